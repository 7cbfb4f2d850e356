-- Whether a sweep would find anything: a lease that expired at least some time ago, or runs whose worker was
-- taken back, closed, or is unknown. One step in the index for each worker that holds runs; locks nothing.
-- $1 grace in microseconds.
WITH RECURSIVE holder (id) AS (
    SELECT (
        SELECT job.worker_id FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id IS NOT NULL
        ORDER BY job.worker_id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.worker_id FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id > holder.id
        ORDER BY job.worker_id LIMIT 1
    )
    FROM holder
    WHERE holder.id IS NOT NULL
)
SELECT
    EXISTS (
        SELECT FROM {schema}.worker
        WHERE worker.ended_at_us IS NULL
            AND worker.expires_at_us <= (
                SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint
            )
    )
    OR EXISTS (
        SELECT FROM holder
        WHERE holder.id IS NOT NULL
            AND NOT EXISTS (
                SELECT FROM {schema}.worker
                WHERE worker.id = holder.id AND worker.ended_at_us IS NULL
            )
    )
    OR EXISTS (
        SELECT FROM {schema}.job WHERE job.state = 'running' AND job.worker_id IS NULL
    ) AS is_due
