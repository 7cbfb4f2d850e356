-- Each queue and route that has ready jobs: how many, up to a limit, and when the first fell due. One step
-- in the index for each and for what is counted, however many jobs there are.
-- ?1 limit.
WITH RECURSIVE
named (queue) AS (
    SELECT (SELECT queue FROM jobs_routed WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT queue FROM jobs_routed
        WHERE state = 'ready' AND queue > named.queue
        ORDER BY queue LIMIT 1
    )
    FROM named
    WHERE named.queue IS NOT NULL
),
found (queue, route) AS (
    SELECT named.queue, (
        SELECT route FROM jobs_routed
        WHERE state = 'ready' AND queue = named.queue
        ORDER BY route LIMIT 1
    )
    FROM named
    WHERE named.queue IS NOT NULL
    UNION ALL
    SELECT found.queue, (
        SELECT route FROM jobs_routed
        WHERE state = 'ready' AND queue = found.queue AND route > found.route
        ORDER BY route LIMIT 1
    )
    FROM found
    WHERE found.route IS NOT NULL
)
SELECT
    queue,
    (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM jobs_routed
            WHERE state = 'ready' AND queue = found.queue AND route = found.route LIMIT ?1 + 0
        )
    ) AS jobs,
    (
        SELECT due_at_us FROM jobs_job WHERE id = (
            SELECT id FROM jobs_routed
            WHERE state = 'ready' AND queue = found.queue AND route = found.route
            ORDER BY place LIMIT 1
        )
    ) AS head_due_at_us
FROM found
WHERE route IS NOT NULL
