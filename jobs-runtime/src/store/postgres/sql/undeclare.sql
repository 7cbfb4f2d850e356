-- Takes back what a person declared of a schedule; answers with a row if there was anything.
-- $1 schedule.
DELETE FROM {schema}.schedule_declaration WHERE schedule = $1::text AND worker_id = 0
RETURNING worker_id
