-- Waits for a job's row and locks it; and first its key, where that binds the run, since an enqueue of that key
-- locks the key before it waits for the row.
-- $1 job.
WITH key AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended(job.kind || chr(1) || job.unique_key, 7241)) AS taken
    FROM {schema}.job AS job
    WHERE job.id = $1 AND job.unique_while IS NOT NULL AND job.unique_key IS NOT NULL
)
SELECT FROM (SELECT count(taken) FROM key) AS first
CROSS JOIN LATERAL (
    SELECT FROM {schema}.job AS job WHERE job.id = $1 FOR NO KEY UPDATE
) AS held
