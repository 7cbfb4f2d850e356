-- Makes scheduled jobs ready, due now at the latest.
-- ?1 array of job ids, ?2 now in microseconds.
UPDATE jobs_job SET state = 'ready', due_at_us = min(due_at_us, ?2)
WHERE id IN (SELECT value FROM json_each(?1)) AND state = 'scheduled'
