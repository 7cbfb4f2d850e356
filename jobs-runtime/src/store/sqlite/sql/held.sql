-- The runs of a worker in order of job, and whether someone asked to cancel them.
-- ?1 worker.
SELECT job.id, job.claim_number, cancel.job_id IS NOT NULL AS is_cancel_requested
FROM jobs_job AS job
LEFT JOIN jobs_cancel_request AS cancel
    ON cancel.job_id = job.id AND cancel.claim_number = job.claim_number
WHERE job.state = 'running' AND job.worker_id = ?1
ORDER BY job.id
