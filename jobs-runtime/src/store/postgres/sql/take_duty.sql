-- Gives an open worker a duty that is its own, or free, or of a worker that has ended or leaves. No
-- row: it does not have it.
-- $1 duty, $2 worker.
INSERT INTO {schema}.duty (name, worker_id)
SELECT $1, worker.id FROM {schema}.worker
WHERE worker.id = $2 AND worker.ended_at_us IS NULL AND NOT worker.is_leaving
ON CONFLICT (name) DO UPDATE SET worker_id = excluded.worker_id
WHERE duty.worker_id = excluded.worker_id
    OR EXISTS (
        SELECT FROM {schema}.worker AS holder
        WHERE holder.id = duty.worker_id AND (holder.ended_at_us IS NOT NULL OR holder.is_leaving)
    )
RETURNING worker_id
