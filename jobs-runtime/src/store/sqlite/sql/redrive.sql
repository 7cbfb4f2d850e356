-- Makes dead and cancelled jobs ready, due now.
-- ?1 array of job ids, ?2 now in microseconds, ?3 whether the counters are kept, ?4 how much further
--    the number of the idempotency key is.
UPDATE jobs_job
SET
    state = 'ready',
    due_at_us = ?2,
    finished_at_us = NULL,
    expires_at_us = NULL,
    key_number = CASE
        WHEN ?4 > 0 THEN min(coalesce(key_number, 0), 2147483646) + 1 ELSE key_number
    END,
    failures = CASE WHEN ?3 THEN failures ELSE 0 END,
    interruptions = CASE WHEN ?3 THEN interruptions ELSE 0 END,
    crashes = CASE WHEN ?3 THEN crashes ELSE 0 END,
    refusals = CASE WHEN ?3 THEN refusals ELSE 0 END,
    snoozes = CASE WHEN ?3 THEN snoozes ELSE 0 END
WHERE id IN (SELECT value FROM json_each(?1)) AND state IN ('dead', 'cancelled')
