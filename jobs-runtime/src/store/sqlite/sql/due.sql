-- Scheduled jobs that are due, oldest first.
-- ?1 limit, ?2 now in microseconds.
SELECT id FROM jobs_job
WHERE state = 'scheduled' AND due_at_us <= ?2
ORDER BY due_at_us, id
LIMIT ?1 + 0
