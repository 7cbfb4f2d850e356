-- When the next scheduled jobs are due, soonest first.
-- ?1 limit.
SELECT id, due_at_us FROM jobs_job WHERE state = 'scheduled'
ORDER BY due_at_us, id
LIMIT ?1 + 0
