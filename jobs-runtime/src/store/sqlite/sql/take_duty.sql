-- Gives an open worker a duty that is its own, or free, or of a worker that has ended or leaves. No
-- row: it does not have it.
-- ?1 duty, ?2 worker.
INSERT INTO jobs_duty (name, worker_id)
SELECT ?1, worker.id FROM jobs_worker AS worker
WHERE worker.id = ?2 AND worker.ended_at_us IS NULL AND worker.is_leaving = 0
ON CONFLICT (name) DO UPDATE SET worker_id = excluded.worker_id
WHERE jobs_duty.worker_id = excluded.worker_id
    OR EXISTS (
        SELECT 1 FROM jobs_worker AS holder
        WHERE holder.id = jobs_duty.worker_id
            AND (holder.ended_at_us IS NOT NULL OR holder.is_leaving = 1)
    )
RETURNING worker_id
