-- How many jobs of a queue run, counted up to a limit.
-- $1 queue, $2 limit.
SELECT count(*) AS running FROM (
    SELECT FROM {schema}.job WHERE state = 'running' AND queue = $1::text LIMIT $2::bigint
) AS job
