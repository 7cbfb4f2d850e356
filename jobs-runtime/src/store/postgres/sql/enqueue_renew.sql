-- Gives a waiting job what a new one of its kind and key brings; answers with a row if it waits. The
-- transaction that asks has locked it.
-- $1 job, $2 whether its payload is replaced, $3 version, $4 min_reader, $5 payload, $6 headers,
-- $7 build, $8 whether it is rescheduled, $9 due in microseconds from now or null, $10 due_at_us or
-- null, $11 priority, $12 expires in microseconds from then or null.
WITH new AS MATERIALIZED (
    SELECT
        clock.now_us,
        coalesce(
            $10::bigint, clock.now_us + least($9::bigint, 9223372036854775807 - clock.now_us)
        ) AS due_at_us
    FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) AS clock
)
UPDATE {schema}.job AS job
SET version = CASE WHEN $2::boolean THEN $3::text ELSE job.version END,
    min_reader = CASE WHEN $2::boolean THEN $4::text ELSE job.min_reader END,
    payload = CASE WHEN $2::boolean THEN $5::json ELSE job.payload END,
    headers = CASE WHEN $2::boolean THEN $6::json ELSE job.headers END,
    build = CASE WHEN $2::boolean THEN $7::text ELSE job.build END,
    failures = CASE WHEN $2::boolean THEN 0 ELSE job.failures END,
    interruptions = CASE WHEN $2::boolean THEN 0 ELSE job.interruptions END,
    crashes = CASE WHEN $2::boolean THEN 0 ELSE job.crashes END,
    refusals = CASE WHEN $2::boolean THEN 0 ELSE job.refusals END,
    snoozes = CASE WHEN $2::boolean THEN 0 ELSE job.snoozes END,
    checkpoints = CASE WHEN $2::boolean THEN 0 ELSE job.checkpoints END,
    refused_reason = CASE WHEN $2::boolean THEN NULL ELSE job.refused_reason END,
    refused_build = CASE WHEN $2::boolean THEN NULL ELSE job.refused_build END,
    progress = CASE WHEN $2::boolean THEN NULL ELSE job.progress END,
    state = CASE
        WHEN NOT $8::boolean THEN job.state
        WHEN new.due_at_us <= new.now_us THEN 'ready'
        ELSE 'scheduled'
    END,
    due_at_us = CASE WHEN $8::boolean THEN new.due_at_us ELSE job.due_at_us END,
    priority = CASE WHEN $8::boolean THEN $11::smallint ELSE job.priority END,
    expires_at_us = CASE
        WHEN $8::boolean AND $12::bigint IS NULL THEN NULL
        WHEN $8::boolean
            THEN new.due_at_us + least($12::bigint, 9223372036854775807 - greatest(new.due_at_us, 0))
        ELSE job.expires_at_us
    END
FROM new
WHERE job.id = $1::bigint AND job.state IN ('scheduled', 'ready')
RETURNING job.id
