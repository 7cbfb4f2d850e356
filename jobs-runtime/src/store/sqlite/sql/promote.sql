-- Makes scheduled jobs that are due ready, in order of their due instants, which they keep.
-- ?1 now in microseconds, ?2 limit.
UPDATE jobs_job SET state = 'ready'
WHERE id IN (
    SELECT id FROM jobs_job
    WHERE state = 'scheduled' AND due_at_us <= ?1
    ORDER BY due_at_us, id
    LIMIT ?2 + 0
)
