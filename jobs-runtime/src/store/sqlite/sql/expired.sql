-- Waiting jobs that no run may start of any more.
-- ?1 limit, ?2 now in microseconds.
SELECT id FROM jobs_job
WHERE expires_at_us <= ?2 AND expires_at_us IS NOT NULL AND state IN ('scheduled', 'ready')
ORDER BY expires_at_us, id
LIMIT ?1 + 0
