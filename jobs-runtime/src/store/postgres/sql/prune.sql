-- Deletes finished jobs that are older than their retention, oldest first, with all that is kept of
-- them; answers how many. Locked rows are stepped over.
-- In microseconds: $1 succeeded, $2 cancelled, $3 dead; $4 limit.
WITH old AS MATERIALIZED (
    SELECT next.at
    FROM (VALUES ('succeeded', $1::bigint), ('cancelled', $2::bigint), ('dead', $3::bigint))
        AS kept (state, span_us)
    CROSS JOIN LATERAL (
        SELECT job.ctid AS at, job.finished_at_us, job.id FROM {schema}.job AS job
        WHERE job.state = kept.state AND job.finished_at_us IS NOT NULL
            AND job.finished_at_us < (
                SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
            ) - kept.span_us
        ORDER BY job.state, job.finished_at_us, job.id
        LIMIT $4::bigint
        FOR UPDATE SKIP LOCKED
    ) AS next
    ORDER BY next.finished_at_us, next.id
    LIMIT $4::bigint
),
deleted AS (
    DELETE FROM {schema}.job WHERE ctid = ANY (ARRAY (SELECT at FROM old))
    RETURNING id, events, checkpoints
),
events AS (
    DELETE FROM {schema}.event
    WHERE job_id = ANY (ARRAY (SELECT id FROM deleted WHERE events > 0))
),
checkpoints AS (
    DELETE FROM {schema}.checkpoint
    WHERE job_id = ANY (ARRAY (SELECT id FROM deleted WHERE checkpoints > 0))
)
SELECT count(*) FROM deleted
