-- Locks finished jobs and reads what decides what a person may do to them, and a twin other than the job
-- itself: one that waits, or one that runs and binds their key meanwhile. What has not finished is only read,
-- and what somebody has just brought back counts as ready.
-- Rows are locked in order of key, as an enqueue of unique jobs locks those that are there, and none that such
-- an enqueue may wait for.
-- $1 array of job ids, each once.
WITH finished AS MATERIALIZED (
    SELECT job.* FROM {schema}.job AS job
    WHERE job.id = ANY ($1::bigint[]) AND job.state IN ('succeeded', 'dead', 'cancelled')
    ORDER BY job.unique_key COLLATE "C" NULLS FIRST, job.kind, job.id
    FOR NO KEY UPDATE
)
SELECT
    job.id, job.state, job.claim_number, job.events, job.kind, job.unique_key,
    job.finished_at_us,
    coalesce(
        (
            SELECT twin.id FROM {schema}.job AS twin
            WHERE twin.kind = job.kind AND twin.unique_key = job.unique_key
                AND twin.unique_key IS NOT NULL AND twin.state IN ('scheduled', 'ready')
                AND twin.id <> job.id
            LIMIT 1
        ),
        (
            SELECT twin.id FROM {schema}.job AS twin
            WHERE job.unique_while IS NOT NULL
                AND twin.kind = job.kind AND twin.unique_key = job.unique_key
                AND twin.unique_while IS NOT NULL
                AND twin.state IN ('scheduled', 'ready', 'running') AND twin.state = 'running'
                AND twin.id <> job.id
            LIMIT 1
        )
    ) AS twin
FROM (
    SELECT
        finished.id, finished.state, finished.claim_number, finished.events, finished.kind,
        finished.unique_key, finished.unique_while, finished.finished_at_us
    FROM finished
    UNION ALL
    SELECT
        other.id,
        CASE WHEN other.state IN ('succeeded', 'dead', 'cancelled') THEN 'ready' ELSE other.state END,
        other.claim_number, other.events, other.kind, other.unique_key, other.unique_while,
        other.finished_at_us
    FROM {schema}.job AS other
    WHERE other.id = ANY ($1::bigint[]) AND other.id NOT IN (SELECT id FROM finished)
) AS job
