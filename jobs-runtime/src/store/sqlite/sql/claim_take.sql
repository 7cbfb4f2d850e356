-- Takes jobs that were read in the same transaction, for a worker.
-- ?1 worker, ?2 now in microseconds, ?3 array of job ids.
UPDATE jobs_job
SET state = 'running', claim_number = claim_number + 1, worker_id = ?1, claimed_at_us = ?2
WHERE id IN (SELECT value FROM json_each(?3))
