-- Deletes workers that ended long ago and hold neither a run nor a duty.
-- $1 how long ago, in microseconds.
DELETE FROM {schema}.worker
WHERE ended_at_us < (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) - $1::bigint
    AND NOT EXISTS (
        SELECT FROM {schema}.job WHERE job.state = 'running' AND job.worker_id = worker.id
    )
    AND NOT EXISTS (SELECT FROM {schema}.duty WHERE duty.worker_id = worker.id)
