-- Locks waiting jobs that no run may start of any more. Locked rows are stepped over.
-- $1 limit.
SELECT job.id FROM {schema}.job AS job
WHERE job.expires_at_us <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    AND job.expires_at_us IS NOT NULL AND job.state IN ('scheduled', 'ready')
ORDER BY job.expires_at_us, job.id
LIMIT $1::bigint
FOR NO KEY UPDATE SKIP LOCKED
