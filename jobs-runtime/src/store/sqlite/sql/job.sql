-- All that is kept of a job.
-- ?1 job.
SELECT
    job.id, job.state, job.queue, job.kind, job.version, job.min_reader, job.payload, job.headers,
    job.unique_key, job.priority, job.claim_number, job.worker_id, job.failures, job.interruptions,
    job.crashes, job.refusals, job.snoozes, job.max_failures, job.max_interruptions,
    job.refused_reason, job.refused_build, job.error_class, job.error_text, job.build,
    job.enqueued_at_us, job.due_at_us, job.claimed_at_us, job.finished_at_us,
    job.progress, job.result,
    saved.version AS checkpoint_version, saved.min_reader AS checkpoint_min_reader,
    saved.text AS checkpoint_text, saved.number AS checkpoint_number
FROM jobs_job AS job
LEFT JOIN jobs_checkpoint AS saved ON saved.job_id = job.id
WHERE job.id = ?1
