-- Stores jobs without a unique key, in the order of the arrays; each gets a number after the one
-- before. Wakes who listens, while the server's queue of notifications is under half full: when it
-- is full, every commit that notifies fails.
-- Arrays: $1 queue, $2 kind, $3 version, $4 min_reader, $5 payload, $6 headers, $7 priority,
-- $8 due in microseconds from now or null, $9 due_at_us or null, $10 unique key, $11 max_failures,
-- $12 max_interruptions, $13 build; $14 channel to notify or null.
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
)
INSERT INTO {schema}.job (
    queue, kind, version, min_reader, payload, headers, priority, due_at_us, state, unique_key,
    max_failures, max_interruptions, build, enqueued_at_us
)
SELECT
    new.queue, new.kind, new.version, new.min_reader, new.payload::json, new.headers::json,
    new.priority,
    coalesce(new.due_at, clock.now_us + least(new.due_in_us, 9223372036854775807 - clock.now_us)),
    CASE
        WHEN coalesce(new.due_at, clock.now_us) <= clock.now_us AND coalesce(new.due_in_us, 0) <= 0
            THEN 'ready'
        ELSE 'scheduled'
    END,
    new.unique_key, new.max_failures, new.max_interruptions, new.build, clock.now_us
FROM clock
CROSS JOIN (
    SELECT
        unnest($1::text[]) AS queue, unnest($2::text[]) AS kind, unnest($3::text[]) AS version,
        unnest($4::text[]) AS min_reader, unnest($5::text[]) AS payload,
        unnest($6::text[]) AS headers, unnest($7::smallint[]) AS priority,
        unnest($8::bigint[]) AS due_in_us, unnest($9::bigint[]) AS due_at,
        unnest($10::text[]) AS unique_key, unnest($11::integer[]) AS max_failures,
        unnest($12::integer[]) AS max_interruptions, unnest($13::text[]) AS build
) AS new
RETURNING
    id,
    (
        SELECT pg_notify($14::text, '')
        WHERE $14::text IS NOT NULL AND pg_notification_queue_usage() < 0.5
    ) IS NULL AS is_silent
