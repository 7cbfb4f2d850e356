-- Drops the requests to cancel runs that were settled.
-- ?1 array of job ids.
DELETE FROM jobs_cancel_request WHERE job_id IN (SELECT value FROM json_each(?1))
