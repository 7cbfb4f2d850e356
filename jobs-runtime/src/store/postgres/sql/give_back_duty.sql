-- Gives back a duty, where it is this worker's.
-- $1 duty, $2 worker.
DELETE FROM {schema}.duty WHERE name = $1 AND worker_id = $2
