-- Ends the ready jobs of a head whose claim number can't grow: under the same number a stale worker
-- could pass for the next one. Looks at what a claim of that limit has left standing; each that it
-- ends has one event more.
-- ?1 queue, ?2 route, ?3 limit, ?4 now in microseconds, ?5 error class, ?6 error text.
UPDATE jobs_job
SET state = 'dead', finished_at_us = ?4, error_class = ?5, error_text = ?6,
    events = max(0, min(events, 9223372036854775806)) + 1
WHERE id IN (
    SELECT id FROM jobs_routed
    WHERE state = 'ready' AND queue = ?1 AND route = ?2
        AND (SELECT paused.queue FROM jobs_pause AS paused WHERE paused.queue = ?1) IS NULL
    ORDER BY place, id
    LIMIT ?3 + 0
) AND claim_number = 9223372036854775807
RETURNING id, claim_number, events
