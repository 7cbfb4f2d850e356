-- Forgets what workers declared that are forgotten themselves.
-- ?1 array of workers.
DELETE FROM jobs_schedule_declaration WHERE worker_id IN (SELECT value FROM json_each(?1))
