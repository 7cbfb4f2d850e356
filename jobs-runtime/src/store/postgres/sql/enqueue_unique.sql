-- What enqueue.sql does, for jobs of which some have a unique key or expire.
-- Where a waiting job has the kind and the key of a new one, nothing is stored for it, and that job
-- is locked until the transaction ends. The caller keeps twins within the arrays apart.
-- Keyed jobs go in by order of key, so that two calls never wait for each other; their numbers are
-- drawn before that, in the order of the arrays.
-- Arrays: $1 queue, $2 kind, $3 version, $4 min_reader, $5 payload, $6 headers, $7 priority,
-- $8 due in microseconds from now or null, $9 due_at_us or null, $10 unique key, $11 max_failures,
-- $12 max_interruptions, $13 build; $14 channel to notify or null; arrays: $15 unique_while,
-- $16 expires in microseconds from when it is due or null, $17 number drawn before, or empty; $18 the
-- instant of the call, or null for now.
WITH clock AS MATERIALIZED (
    SELECT
        coalesce($18::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS now_us
)
INSERT INTO {schema}.job (
    id, queue, kind, version, min_reader, payload, headers, priority, due_at_us, state, unique_key,
    max_failures, max_interruptions, build, unique_while, expires_at_us, enqueued_at_us
)
SELECT
    new.id, new.queue, new.kind, new.version, new.min_reader, new.payload::json, new.headers::json,
    new.priority, new.due_at_us,
    CASE WHEN new.due_at_us <= new.now_us THEN 'ready' ELSE 'scheduled' END,
    new.unique_key, new.max_failures, new.max_interruptions, new.build, new.unique_while,
    CASE WHEN new.expires_in_us IS NOT NULL
        THEN new.due_at_us + least(new.expires_in_us, 9223372036854775807 - greatest(new.due_at_us, 0))
    END,
    new.now_us
FROM (
    SELECT
        coalesce(job.drawn, nextval({job_ids})) AS id, job.*, clock.now_us,
        coalesce(
            job.due_at,
            clock.now_us + least(job.due_in_us, 9223372036854775807 - clock.now_us)
        ) AS due_at_us
    FROM clock
    CROSS JOIN unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[],
        $8::bigint[], $9::bigint[], $10::text[], $11::integer[], $12::integer[], $13::text[],
        $15::text[], $16::bigint[], $17::bigint[]
    ) WITH ORDINALITY AS job (
        queue, kind, version, min_reader, payload, headers, priority, due_in_us, due_at, unique_key,
        max_failures, max_interruptions, build, unique_while, expires_in_us, drawn, nth
    )
    ORDER BY job.nth
) AS new
ORDER BY new.unique_key COLLATE "C" NULLS FIRST, new.kind COLLATE "C", new.id
ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'ready')
DO UPDATE SET unique_key = excluded.unique_key WHERE false
RETURNING
    id, CASE WHEN unique_key IS NOT NULL THEN kind END AS keyed_kind, unique_key,
    (
        SELECT pg_notify($14::text, '')
        WHERE $14::text IS NOT NULL AND pg_notification_queue_usage() < 0.5
    ) IS NULL AS is_silent
