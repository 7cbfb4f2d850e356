-- Ends waiting jobs as dead; each has one event more.
-- ?1 array of job ids, ?2 now in microseconds, ?3 error class, ?4 error text.
UPDATE jobs_job
SET state = 'dead', finished_at_us = ?2, error_class = ?3, error_text = ?4,
    events = max(0, min(events, 9223372036854775806)) + 1
WHERE id IN (SELECT value FROM json_each(?1)) AND state IN ('scheduled', 'ready')
RETURNING id, claim_number, events
