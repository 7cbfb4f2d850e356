-- The workers, newest first, and how many runs each holds.
SELECT
    worker.id, worker.name, worker.build, worker.manifest, worker.phase, worker.started_at_us,
    worker.ended_at_us, worker.is_taken_back,
    worker.reclaimed, worker.drain_settled, worker.drain_interrupted, worker.drain_released,
    worker.drain_abandoned, worker.drain_took_us,
    (
        SELECT count(*) FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id = worker.id
    ) AS held
FROM {schema}.worker
ORDER BY worker.id DESC
