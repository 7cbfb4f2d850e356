-- Changes when waiting jobs are due and how urgent they are; answers which, with the number of
-- their event.
-- Rows are locked in order of key, as an enqueue of unique jobs locks those that are there: two that wait for
-- rows never wait for each other.
-- $1 array of job ids, $2 priority or null, $3 due in microseconds from now or null, $4 due_at_us or
-- null.
WITH waiting AS MATERIALIZED (
    SELECT job.id, change.now_us, change.due_at_us
    FROM (
        SELECT
            clock.now_us,
            CASE
                WHEN $3::bigint IS NULL THEN $4::bigint
                ELSE clock.now_us + least($3::bigint, 9223372036854775807 - clock.now_us)
            END AS due_at_us
        FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) AS clock
    ) AS change
    CROSS JOIN LATERAL (
        SELECT job.id FROM {schema}.job AS job
        WHERE job.id = ANY ($1::bigint[]) AND job.state IN ('scheduled', 'ready')
        ORDER BY job.unique_key COLLATE "C" NULLS FIRST, job.kind, job.id
        FOR NO KEY UPDATE
    ) AS job
)
UPDATE {schema}.job AS job
SET events = greatest(0, least(job.events, 9223372036854775806)) + 1,
    priority = coalesce($2::smallint, job.priority),
    due_at_us = coalesce(waiting.due_at_us, job.due_at_us),
    state = CASE
        WHEN waiting.due_at_us IS NULL THEN job.state
        WHEN waiting.due_at_us <= waiting.now_us THEN 'ready'
        ELSE 'scheduled'
    END
FROM waiting
WHERE job.id = waiting.id
RETURNING job.id, job.claim_number, job.events
