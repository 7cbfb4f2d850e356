-- The runs of a worker in order of job, and whether someone asked to cancel them.
-- $1 worker.
SELECT
    job.id, job.claim_number,
    EXISTS (
        SELECT FROM {schema}.cancel_request AS cancel
        WHERE cancel.job_id = job.id AND cancel.claim_number = job.claim_number
    ) AS is_cancel_requested
FROM {schema}.job AS job
WHERE job.state = 'running' AND job.worker_id = $1
ORDER BY job.id
