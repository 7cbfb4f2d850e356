-- Makes the refused jobs of these routes ready, due now at the latest. The refusal stays noted.
-- ?1 array of routes, ?2 now in microseconds, ?3 limit.
UPDATE jobs_job SET state = 'ready', due_at_us = min(due_at_us, ?2)
WHERE id IN (
    SELECT id FROM jobs_routed
    WHERE state = 'scheduled' AND refused_reason IS NOT NULL
        AND route IN (SELECT value FROM json_each(?1))
    ORDER BY id
    LIMIT ?3 + 0
)
