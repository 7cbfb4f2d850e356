-- Ends a worker's lease for good, by its own word. Nothing happens when it has ended already.
-- $1 worker, $2 phase.
UPDATE {schema}.worker
SET phase = $2, ended_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE id = $1 AND ended_at_us IS NULL
RETURNING id
