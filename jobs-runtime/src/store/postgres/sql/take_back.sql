-- Ends for ever the leases that expired at least some time ago, and answers whose. A row that is
-- locked, by a claim or another sweep, is left for the next one.
-- $1 grace in microseconds.
WITH expired AS MATERIALIZED (
    SELECT worker.ctid AS at FROM {schema}.worker
    WHERE worker.ended_at_us IS NULL
        AND worker.expires_at_us <= (
            SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint
        )
    ORDER BY worker.id
    FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.worker
SET is_taken_back = true,
    ended_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE ctid = ANY (ARRAY (SELECT at FROM expired))
RETURNING id
