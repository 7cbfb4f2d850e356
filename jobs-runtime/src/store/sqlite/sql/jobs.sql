-- All that is kept of the jobs that match, in order of id.
-- ?1 state or null, ?2 queue or null, ?3 kind or null, ?4 after this id or null, ?5 limit.
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
WHERE job.id > coalesce(?4, -9223372036854775808)
    AND (?1 IS NULL OR job.state = ?1)
    AND (?2 IS NULL OR job.queue = ?2)
    AND (?3 IS NULL OR job.kind = ?3)
ORDER BY job.id
LIMIT ?5 + 0
