-- The jobs that bind the keys of new ones although they don't wait: one that runs, or one that is kept.
-- ?1 array of [kind, unique_key, unique_while].
SELECT new.key AS element, min(
    coalesce(
        (
            SELECT twin.id FROM jobs_job AS twin
            WHERE twin.kind = new.value ->> 0 AND twin.unique_key = new.value ->> 1
                AND twin.unique_while IS NOT NULL
                AND twin.state IN ('scheduled', 'ready', 'running') AND twin.state = 'running'
        ),
        (
            SELECT twin.id FROM jobs_job AS twin
            WHERE twin.kind = new.value ->> 0 AND twin.unique_key = new.value ->> 1
                AND twin.unique_while = 'kept' AND new.value ->> 2 = 'kept'
        )
    )
) AS twin
FROM json_each(?1) AS new
GROUP BY new.key
HAVING twin IS NOT NULL
