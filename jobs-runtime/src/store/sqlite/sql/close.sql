-- Ends a worker's lease for good, by its own word. Nothing happens when it has ended already.
-- ?1 worker, ?2 now in microseconds.
UPDATE jobs_worker SET ended_at_us = ?2, phase = 'done'
WHERE id = ?1 AND ended_at_us IS NULL AND is_leaving = 0
