-- Writes a run's success within its worker's transaction, where the fence holds.
-- ?1 job, ?2 claim number, ?3 now in microseconds, ?4 progress or null, ?5 result or null.
UPDATE jobs_job
SET state = 'succeeded', finished_at_us = ?3, refused_reason = NULL, refused_build = NULL,
    progress = coalesce(?4, progress), result = coalesce(?5, result)
WHERE id = ?1 AND claim_number = ?2 AND state = 'running'
