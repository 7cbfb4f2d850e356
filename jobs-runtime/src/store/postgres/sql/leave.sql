-- Lets a worker leave whose abandoned runs stay claimed, once the claims in flight under it have
-- ended: it claims nothing more, and its lease is shortened to when its process is gone. Nothing
-- happens when it has ended or leaves already.
-- $1 worker, $2 phase, $3 lease in microseconds.
WITH open AS MATERIALIZED (
    SELECT id FROM {schema}.worker WHERE id = $1 AND ended_at_us IS NULL AND NOT is_leaving
    FOR UPDATE
)
UPDATE {schema}.worker
SET is_leaving = true, phase = $2,
    expires_at_us = (
        SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3::bigint
    )
WHERE id = ANY (ARRAY (SELECT id FROM open))
RETURNING id
