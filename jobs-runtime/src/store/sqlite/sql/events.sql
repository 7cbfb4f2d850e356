-- The kept history of a job, oldest first.
-- ?1 job.
SELECT number, at_us, claim_number, kind, class, text, worker_id, build
FROM jobs_event
WHERE job_id = ?1
ORDER BY number
