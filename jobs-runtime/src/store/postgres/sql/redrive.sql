-- Makes dead and cancelled jobs ready again. The caller has locked them and writes the events.
-- $1 array of job ids; $2 whether the counters stay, $3 whether the checkpoint is forgotten, $4 whether
-- there is a new idempotency key.
UPDATE {schema}.job AS job
SET
    state = 'ready',
    due_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    finished_at_us = NULL,
    expires_at_us = NULL,
    key_number = CASE
        WHEN $4::boolean THEN least(coalesce(job.key_number, 0), 2147483646) + 1
        ELSE job.key_number
    END,
    failures = CASE WHEN $2::boolean THEN job.failures ELSE 0 END,
    interruptions = CASE WHEN $2::boolean THEN job.interruptions ELSE 0 END,
    crashes = CASE WHEN $2::boolean THEN job.crashes ELSE 0 END,
    refusals = CASE WHEN $2::boolean THEN job.refusals ELSE 0 END,
    snoozes = CASE WHEN $2::boolean THEN job.snoozes ELSE 0 END,
    checkpoints = CASE WHEN $3::boolean THEN 0 ELSE job.checkpoints END,
    events = greatest(0, least(job.events, 9223372036854775806)) + 1
WHERE job.id = ANY ($1::bigint[]) AND job.state IN ('dead', 'cancelled')
