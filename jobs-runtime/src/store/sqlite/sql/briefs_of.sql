-- What these jobs are, without what they carry, in order of id.
-- ?1 array of job ids.
SELECT
    job.id, job.state, job.queue, job.kind, job.version, job.priority, job.failures, job.interruptions,
    job.crashes, job.refusals, job.snoozes, job.refused_reason, job.refused_build, job.error_class,
    job.build, job.worker_id, job.unique_key, job.enqueued_at_us, job.due_at_us, job.claimed_at_us,
    job.finished_at_us
FROM jobs_job AS job
WHERE job.id IN (SELECT value FROM json_each(?1))
ORDER BY job.id
