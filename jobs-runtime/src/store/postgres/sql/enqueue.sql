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
    new.priority, due.due_at_us,
    CASE WHEN due.due_at_us <= clock.now_us THEN 'ready' ELSE 'scheduled' END,
    new.unique_key, new.max_failures, new.max_interruptions, new.build, clock.now_us
FROM clock
CROSS JOIN unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[],
    $8::bigint[], $9::bigint[], $10::text[], $11::integer[], $12::integer[], $13::text[]
) AS new (
    queue, kind, version, min_reader, payload, headers, priority, due_in_us, due_at, unique_key,
    max_failures, max_interruptions, build
)
CROSS JOIN LATERAL (
    SELECT coalesce(
        new.due_at, clock.now_us + least(new.due_in_us, 9223372036854775807 - clock.now_us)
    ) AS due_at_us
) AS due
RETURNING
    id,
    (
        SELECT pg_notify($14::text, '')
        WHERE $14::text IS NOT NULL AND pg_notification_queue_usage() < 0.5
    ) IS NULL AS is_silent
