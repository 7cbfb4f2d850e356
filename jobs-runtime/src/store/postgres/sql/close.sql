-- Ends a worker's lease for good, by its own word, once the claims in flight under it have ended.
-- Nothing happens when it has ended already.
-- $1 worker, $2 phase.
WITH open AS MATERIALIZED (
    SELECT id FROM {schema}.worker WHERE id = $1 AND ended_at_us IS NULL AND NOT is_leaving
    FOR UPDATE
)
UPDATE {schema}.worker
SET phase = $2, ended_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE id = ANY (ARRAY (SELECT id FROM open))
RETURNING id
