-- Writes decided settlements where their fences hold. Taking back advances the claim number too.
-- Arrays in the order in which keys are taken: $1 job, $2 claim number, $3 next claim number, $4 state, $5 due in
-- microseconds from now or null, $6 due_at_us or null, $7 failures, $8 interruptions, $9 crashes,
-- $10 refusals, $11 snoozes, $12 error class or null, $13 error text, $14 refused reason,
-- $15 refused build, $16 events, $17 progress or null, $18 result or null.
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
)
UPDATE {schema}.job AS job
SET
    claim_number = run.next_claim_number,
    state = run.state,
    worker_id = CASE WHEN run.state = 'succeeded' THEN job.worker_id END,
    due_at_us = CASE
        WHEN run.state NOT IN ('scheduled', 'ready') THEN job.due_at_us
        WHEN run.due_at_us IS NOT NULL THEN run.due_at_us
        WHEN run.due_in_us IS NOT NULL
            THEN clock.now_us + least(run.due_in_us, 9223372036854775807 - clock.now_us)
        ELSE job.due_at_us
    END,
    finished_at_us = CASE
        WHEN run.state IN ('scheduled', 'ready') THEN job.finished_at_us
        ELSE clock.now_us
    END,
    failures = run.failures,
    interruptions = run.interruptions,
    crashes = run.crashes,
    refusals = run.refusals,
    snoozes = run.snoozes,
    error_class = coalesce(run.error_class, job.error_class),
    error_text = CASE WHEN run.error_class IS NULL THEN job.error_text ELSE run.error_text END,
    refused_reason = run.refused_reason,
    refused_build = run.refused_build,
    events = run.events,
    progress = coalesce(run.progress, job.progress),
    result = coalesce(run.result, job.result)
FROM clock
CROSS JOIN unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
    $7::integer[], $8::integer[], $9::integer[], $10::integer[], $11::integer[], $12::text[],
    $13::text[], $14::text[], $15::text[], $16::bigint[], $17::text[], $18::text[]
) AS run (
    id, claim_number, next_claim_number, state, due_in_us, due_at_us, failures, interruptions,
    crashes, refusals, snoozes, error_class, error_text, refused_reason, refused_build, events,
    progress, result
)
WHERE job.id = run.id AND job.claim_number = run.claim_number AND job.state = 'running'
