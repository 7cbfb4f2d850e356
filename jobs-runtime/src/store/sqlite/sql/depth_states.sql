-- How many jobs each state has, up to a limit, by the indexes that hold only those. A row that another
-- language made finished without an instant is not counted.
-- ?1 limit.
SELECT 'scheduled' AS state, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs_job WHERE state = 'scheduled' ORDER BY due_at_us LIMIT ?1 + 0
    ) AS counted
) AS jobs
UNION ALL
SELECT 'ready' AS state, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs_job WHERE state = 'ready' ORDER BY queue LIMIT ?1 + 0
    ) AS counted
) AS jobs
UNION ALL
SELECT 'running' AS state, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs_job WHERE state = 'running' ORDER BY worker_id LIMIT ?1 + 0
    ) AS counted
) AS jobs
UNION ALL
SELECT 'succeeded' AS state, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs_job WHERE state = 'succeeded' AND finished_at_us IS NOT NULL ORDER BY finished_at_us LIMIT ?1 + 0
    ) AS counted
) AS jobs
UNION ALL
SELECT 'dead' AS state, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs_job WHERE state = 'dead' AND finished_at_us IS NOT NULL ORDER BY finished_at_us LIMIT ?1 + 0
    ) AS counted
) AS jobs
UNION ALL
SELECT 'cancelled' AS state, (
    SELECT count(*) FROM (
        SELECT 1 AS one FROM jobs_job WHERE state = 'cancelled' AND finished_at_us IS NOT NULL ORDER BY finished_at_us LIMIT ?1 + 0
    ) AS counted
) AS jobs
