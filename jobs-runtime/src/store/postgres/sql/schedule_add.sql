-- A schedule that somebody declares for the first time: it ticks once a leader has seen it.
-- $1 name.
INSERT INTO {schema}.schedule (name) VALUES ($1::text) ON CONFLICT (name) DO NOTHING
