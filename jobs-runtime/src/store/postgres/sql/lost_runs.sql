-- Locks runs whose worker was taken back, closed, or is unknown, in order of job: one step in the
-- index for each worker that holds runs. Says whether it told that it abandoned them, whether it held
-- no other, who it was, and whether the run has a unique key. Locked rows are stepped over.
-- $1 limit.
WITH RECURSIVE holder (id) AS (
    SELECT (
        SELECT job.worker_id FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id IS NOT NULL
        ORDER BY job.worker_id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.worker_id FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id > holder.id
        ORDER BY job.worker_id LIMIT 1
    )
    FROM holder
    WHERE holder.id IS NOT NULL
),
lost AS MATERIALIZED (
    SELECT run.id
    FROM holder
    CROSS JOIN LATERAL (
        SELECT job.id FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id = holder.id
        ORDER BY job.worker_id, job.id
        LIMIT $1::bigint
    ) AS run
    WHERE NOT EXISTS (
        SELECT FROM {schema}.worker WHERE worker.id = holder.id AND worker.ended_at_us IS NULL
    )
    UNION ALL
    (
        SELECT job.id FROM {schema}.job AS job
        WHERE job.state = 'running' AND job.worker_id IS NULL
        ORDER BY job.worker_id, job.id
        LIMIT $1::bigint
    )
    ORDER BY id
    LIMIT $1::bigint
)
SELECT
    job.id, job.claim_number, job.failures, job.interruptions, job.crashes, job.refusals,
    job.snoozes, job.max_failures, job.max_interruptions, job.refused_reason, job.refused_build,
    EXISTS (
        SELECT FROM {schema}.abandoned
        WHERE abandoned.job_id = job.id AND abandoned.claim_number = job.claim_number
    ) AS is_abandoned,
    EXISTS (
        SELECT FROM {schema}.worker WHERE worker.id = job.worker_id AND worker.reclaimed = 1
    ) AS was_alone,
    job.worker_id,
    (SELECT worker.build FROM {schema}.worker WHERE worker.id = job.worker_id) AS worker_build,
    job.unique_key IS NOT NULL AS has_key
FROM lost
CROSS JOIN LATERAL (
    SELECT job.* FROM {schema}.job AS job
    WHERE job.id = lost.id AND job.state = 'running'
    FOR NO KEY UPDATE SKIP LOCKED
) AS job
