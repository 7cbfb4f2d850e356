-- The queues and routes that have ready jobs, in every queue there is: one step in the index for
-- each, however many jobs it has.
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
SELECT queue, route FROM found WHERE route IS NOT NULL
