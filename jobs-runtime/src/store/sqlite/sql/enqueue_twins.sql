-- The waiting jobs that stand for new ones of their kind and unique key.
-- ?1 array of [kind, unique_key].
SELECT new.key AS element, twin.id AS twin
FROM json_each(?1) AS new
CROSS JOIN jobs_job AS twin
    ON twin.kind = new.value ->> 0
    AND twin.unique_key = new.value ->> 1
    AND twin.unique_key IS NOT NULL
    AND twin.state IN ('scheduled', 'ready')
