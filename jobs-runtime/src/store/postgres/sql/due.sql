-- Locks scheduled jobs that are due, oldest first. Locked rows are stepped over.
-- $1 limit.
SELECT job.id FROM {schema}.job AS job
WHERE job.state = 'scheduled'
    AND job.due_at_us <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ORDER BY job.due_at_us, job.id
LIMIT $1::bigint
FOR NO KEY UPDATE SKIP LOCKED
