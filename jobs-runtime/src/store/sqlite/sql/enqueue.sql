-- Stores jobs in the order of the array; each gets the number after the one before.
-- The caller has answered the unique ones whose twin waits.
-- ?1 array of [queue, kind, version, min_reader, payload, headers, unique_key, priority, state,
--    due_at_us, max_failures, max_interruptions, build, unique_while, expires_at_us],
--    ?2 now in microseconds.
INSERT INTO jobs_job (
    queue, kind, version, min_reader, payload, headers, unique_key, priority, state, due_at_us,
    max_failures, max_interruptions, build, unique_while, expires_at_us, enqueued_at_us
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13,
    value ->> 14, ?2
FROM json_each(?1)
