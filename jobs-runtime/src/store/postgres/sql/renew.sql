-- Renews a lease, from now for its whole length. Answers whether it was open, and who may use the
-- schema now.
-- $1 worker, $2 phase.
WITH renewed AS (
    UPDATE {schema}.worker
    SET phase = $2,
        expires_at_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + lease_us
    WHERE id = $1 AND ended_at_us IS NULL AND NOT is_leaving
    RETURNING id
)
SELECT EXISTS (SELECT FROM renewed) AS is_renewed, min_reader FROM {schema}.meta
