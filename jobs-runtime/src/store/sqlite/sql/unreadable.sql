-- Ends ready jobs of a queue and route that are no UTF-8, so they come as bytes. Joined to an empty
-- text they are texts without an affinity, which the index can be asked for.
-- ?1 queue, ?2 route, ?3 limit, ?4 now in microseconds, ?5 error class, ?6 error text.
UPDATE jobs_job
SET state = 'dead', finished_at_us = ?4, error_class = ?5, error_text = ?6,
    events = max(0, min(events, 9223372036854775806)) + 1
WHERE id IN (
    SELECT id FROM jobs_routed
    WHERE state = 'ready' AND queue = CAST(?1 AS TEXT) || '' AND route = CAST(?2 AS TEXT) || ''
    ORDER BY place, id
    LIMIT ?3 + 0
)
RETURNING id, claim_number, events
