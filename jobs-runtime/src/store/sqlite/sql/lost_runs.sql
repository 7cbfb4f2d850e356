-- The runs whose worker was taken back, closed, or is unknown, in order of job,
-- whether it told that it abandoned them, whether it held no other, and who it was.
-- By the index of runs: the order would tempt the planner into walking all jobs.
-- ?1 limit.
SELECT
    job.id, job.claim_number, job.failures, job.interruptions, job.crashes, job.refusals,
    job.snoozes, job.max_failures, job.max_interruptions, job.refused_reason, job.refused_build,
    abandoned.job_id IS NOT NULL AS is_abandoned,
    EXISTS (
        SELECT 1 FROM jobs_worker AS worker
        WHERE worker.id = job.worker_id AND worker.reclaimed = 1
    ) AS was_alone,
    job.worker_id,
    (SELECT worker.build FROM jobs_worker AS worker WHERE worker.id = job.worker_id) AS worker_build
FROM jobs_job AS job INDEXED BY jobs_job_running
LEFT JOIN jobs_abandoned AS abandoned
    ON abandoned.job_id = job.id AND abandoned.claim_number = job.claim_number
WHERE job.state = 'running'
    AND NOT EXISTS (
        SELECT 1 FROM jobs_worker AS worker
        WHERE worker.id = job.worker_id AND worker.ended_at_us IS NULL
    )
ORDER BY job.id
LIMIT ?1 + 0
