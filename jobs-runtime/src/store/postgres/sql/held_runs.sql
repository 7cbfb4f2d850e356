-- Locks the runs of a worker that it does not abandon in order of job, with what a settlement must
-- know of them, and whether they have a unique key. Locked rows are stepped over.
-- $1 worker.
SELECT
    job.id, job.claim_number, job.failures, job.interruptions, job.crashes, job.refusals,
    job.snoozes, job.max_failures, job.max_interruptions, job.refused_reason, job.refused_build,
    job.unique_key IS NOT NULL AS has_key
FROM {schema}.job AS job
WHERE job.state = 'running' AND job.worker_id = $1
    AND NOT EXISTS (
        SELECT FROM {schema}.abandoned
        WHERE abandoned.job_id = job.id AND abandoned.claim_number = job.claim_number
    )
ORDER BY job.id
FOR NO KEY UPDATE SKIP LOCKED
