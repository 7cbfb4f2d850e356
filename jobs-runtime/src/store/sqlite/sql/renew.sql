-- Renews a lease that was neither closed nor taken back, however late; answers who may use the schema
-- now. No row: it was ended.
-- ?1 worker, ?2 phase, ?3 now in microseconds.
UPDATE jobs_worker
SET renewals = renewals + 1, renewed_at_us = ?3, phase = ?2
WHERE id = ?1 AND ended_at_us IS NULL AND is_leaving = 0
RETURNING renewals, (SELECT min_reader FROM jobs_meta WHERE one = 1) AS min_reader
