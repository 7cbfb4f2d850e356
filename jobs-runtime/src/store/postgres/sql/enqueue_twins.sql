-- The waiting jobs that stand for new ones of their kind and unique key. The transaction that asks
-- has locked them.
-- Arrays: $1 kind, $2 unique key.
SELECT new.nth - 1 AS element, twin.id AS twin
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS new (kind, unique_key, nth)
CROSS JOIN LATERAL (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.kind = new.kind AND job.unique_key = new.unique_key
        AND job.unique_key IS NOT NULL AND job.state IN ('scheduled', 'ready')
    LIMIT 1
) AS twin
