-- Forgets which runs of these jobs were abandoned.
-- ?1 array of job ids.
DELETE FROM jobs_abandoned WHERE job_id IN (SELECT value FROM json_each(?1))
