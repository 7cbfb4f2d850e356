-- Notes that jobs have no checkpoint any more.
-- ?1 array of job ids.
UPDATE jobs_job SET checkpoints = 0 WHERE id IN (SELECT value FROM json_each(?1))
