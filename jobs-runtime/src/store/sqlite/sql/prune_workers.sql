-- Deletes workers that ended long ago and hold neither a run nor a duty, oldest first; answers which.
-- ?1 ended before, in microseconds; ?2 limit.
DELETE FROM jobs_worker
WHERE id IN (
    SELECT worker.id FROM jobs_worker AS worker
    WHERE worker.ended_at_us < ?1
        AND NOT EXISTS (
            SELECT 1 FROM jobs_job AS job
            WHERE job.state = 'running' AND job.worker_id = worker.id
        )
        AND NOT EXISTS (SELECT 1 FROM jobs_duty AS duty WHERE duty.worker_id = worker.id)
    ORDER BY worker.id
    LIMIT ?2 + 0
)
RETURNING id
