-- Stores jobs that differ in nothing but their payload, in the order of the array: what enqueue.sql
-- does, for the most frequent case. An array of arrays is parsed once more for each of its columns.
-- ?1 array of payloads, ?2 now in microseconds, ?3 queue, ?4 kind, ?5 version, ?6 min_reader,
-- ?7 headers, ?8 priority, ?9 state, ?10 due_at_us, ?11 max_failures, ?12 max_interruptions, ?13 build.
INSERT INTO jobs_job (
    queue, kind, version, min_reader, payload, headers, priority, state, due_at_us,
    max_failures, max_interruptions, build, enqueued_at_us
)
SELECT ?3, ?4, ?5, ?6, value, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?2
FROM json_each(?1)
