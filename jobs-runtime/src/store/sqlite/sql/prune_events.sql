-- Deletes the history of pruned jobs.
-- ?1 array of job ids.
DELETE FROM jobs_event WHERE job_id IN (SELECT value FROM json_each(?1))
