-- How many jobs of a queue run, counted up to a limit.
-- ?1 queue, ?2 limit.
SELECT count(*) AS running FROM (
    SELECT 1 FROM jobs_job WHERE state = 'running' AND queue = ?1 LIMIT ?2 + 0
)
