-- Deletes workers that ended long ago and hold neither a run nor a duty, oldest first; answers which.
-- $1 how long ago, in microseconds; $2 limit.
DELETE FROM {schema}.worker
WHERE id = ANY (ARRAY (
    SELECT worker.id FROM {schema}.worker
    WHERE worker.ended_at_us
            < (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) - $1::bigint
        AND NOT EXISTS (
            SELECT FROM {schema}.job WHERE job.state = 'running' AND job.worker_id = worker.id
        )
        AND NOT EXISTS (SELECT FROM {schema}.duty WHERE duty.worker_id = worker.id)
    ORDER BY worker.id
    LIMIT $2::bigint
))
RETURNING id
