-- Changes when waiting jobs are due and how urgent they are. Answers which ones,
-- with how many events they had.
-- ?1 array of job ids, ?2 priority or null, ?3 due_at_us or null, ?4 now in microseconds.
UPDATE jobs_job
SET priority = coalesce(?2, priority),
    due_at_us = coalesce(?3, due_at_us),
    state = CASE WHEN ?3 IS NULL THEN state WHEN ?3 <= ?4 THEN 'ready' ELSE 'scheduled' END
WHERE id IN (SELECT value FROM json_each(?1)) AND state IN ('scheduled', 'ready')
RETURNING id, claim_number, events
