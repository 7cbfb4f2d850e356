-- Ends waiting jobs that no run may start of any more; each has one event more.
-- ?1 now in microseconds, ?2 limit, ?3 error class, ?4 error text.
UPDATE jobs_job
SET state = 'dead', finished_at_us = ?1, error_class = ?3, error_text = ?4,
    events = max(0, min(events, 9223372036854775806)) + 1
WHERE id IN (
    SELECT id FROM jobs_job
    WHERE expires_at_us <= ?1 AND expires_at_us IS NOT NULL AND state IN ('scheduled', 'ready')
    ORDER BY expires_at_us, id
    LIMIT ?2 + 0
)
RETURNING id, claim_number, events
