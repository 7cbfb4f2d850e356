-- The runs of a worker in order of job, with what a settlement must know of them.
-- ?1 worker.
SELECT
    job.id, job.claim_number, job.failures, job.interruptions, job.crashes, job.refusals,
    job.snoozes, job.max_failures, job.max_interruptions, job.refused_reason, job.refused_build
FROM jobs_job AS job
WHERE job.state = 'running' AND job.worker_id = ?1
ORDER BY job.id
