-- Forgets what workers declared that are forgotten themselves.
-- $1 array of workers.
DELETE FROM {schema}.schedule_declaration WHERE worker_id = ANY ($1::bigint[])
