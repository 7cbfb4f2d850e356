-- Lets a worker leave whose abandoned runs stay claimed: it claims nothing more, and its lease is
-- shortened to when its process is gone. Nothing happens when it has ended or leaves already.
-- ?1 worker, ?2 lease in microseconds.
UPDATE jobs_worker SET is_leaving = 1, phase = 'done', lease_us = ?2, renewals = renewals + 1
WHERE id = ?1 AND ended_at_us IS NULL AND is_leaving = 0
