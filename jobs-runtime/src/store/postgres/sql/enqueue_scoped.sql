-- The jobs that bind the keys of new ones for longer than the wait: one that waits, one that runs, or
-- one that is kept. What may still change its state is locked.
-- Arrays: $1 kind, $2 unique key, $3 unique_while.
SELECT new.nth - 1 AS element, coalesce(waiting.id, running.id, kept.id) AS twin
FROM unnest($1::text[], $2::text[], $3::text[])
    WITH ORDINALITY AS new (kind, unique_key, unique_while, nth)
LEFT JOIN LATERAL (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.kind = new.kind AND job.unique_key = new.unique_key
        AND job.unique_key IS NOT NULL AND job.state IN ('scheduled', 'ready')
    LIMIT 1
    FOR NO KEY UPDATE
) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.kind = new.kind AND job.unique_key = new.unique_key
        AND job.unique_while IS NOT NULL AND job.state IN ('scheduled', 'ready', 'running')
    LIMIT 1
    FOR NO KEY UPDATE
) AS running ON true
LEFT JOIN LATERAL (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.kind = new.kind AND job.unique_key = new.unique_key
        AND job.unique_while = 'kept' AND new.unique_while = 'kept'
    LIMIT 1
) AS kept ON true
WHERE coalesce(waiting.id, running.id, kept.id) IS NOT NULL
