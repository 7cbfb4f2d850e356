-- How long until the next scheduled jobs are due, soonest first; zero for those that are due already.
-- $1 limit.
SELECT job.id,
    greatest(
        0, job.due_at_us - (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    ) AS next_in_us
FROM {schema}.job AS job
WHERE job.state = 'scheduled'
ORDER BY job.due_at_us, job.id
LIMIT $1::bigint
