-- Deletes workers that ended long ago and hold neither a run nor a duty.
-- ?1 ended before, in microseconds.
DELETE FROM jobs_worker
WHERE ended_at_us < ?1
    AND NOT EXISTS (
        SELECT 1 FROM jobs_job AS job
        WHERE job.state = 'running' AND job.worker_id = jobs_worker.id
    )
    AND NOT EXISTS (SELECT 1 FROM jobs_duty AS duty WHERE duty.worker_id = jobs_worker.id)
