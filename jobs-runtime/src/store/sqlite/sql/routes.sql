-- The routes that have ready jobs in these queues: one step in the index for each, however many
-- jobs it has. A paused queue has none.
-- ?1 array of queues.
WITH RECURSIVE
wanted (queue) AS (
    SELECT value FROM json_each(?1)
    WHERE value NOT IN (SELECT queue FROM jobs_pause)
),
found (queue, route) AS (
    SELECT wanted.queue, (
        SELECT route FROM jobs_routed
        WHERE state = 'ready' AND queue = wanted.queue
        ORDER BY route LIMIT 1
    )
    FROM wanted
    UNION ALL
    SELECT found.queue, (
        SELECT route FROM jobs_routed
        WHERE state = 'ready' AND queue = found.queue AND route > found.route
        ORDER BY route LIMIT 1
    )
    FROM found
    WHERE found.route IS NOT NULL
)
SELECT queue, route FROM found WHERE route IS NOT NULL
