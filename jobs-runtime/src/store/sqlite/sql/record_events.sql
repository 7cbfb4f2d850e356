-- Writes lines of history over the hundredth before each.
-- ?1 array of [job, number, claim number, kind, class, text], ?2 now in microseconds, ?3 worker or
-- null, ?4 build or null.
INSERT OR REPLACE INTO jobs_event (
    job_id, slot, number, at_us, claim_number, kind, class, text, worker_id, build
)
SELECT
    value ->> 0, value ->> 1 % 100, value ->> 1, ?2, value ->> 2, value ->> 3, value ->> 4,
    value ->> 5, ?3, ?4
FROM json_each(?1)
