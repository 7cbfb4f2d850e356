-- Stops claims from a queue. Pausing again keeps the first reason.
-- $1 queue, $2 by whom, $3 why.
INSERT INTO {schema}.pause (queue, paused_by, reason, paused_at_us)
VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (queue) DO NOTHING
