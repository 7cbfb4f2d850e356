-- The routes that have ready jobs in these queues, each with its first job: one step in the index for
-- each, however many jobs it has. A paused queue has none.
-- ?1 array of queues.
WITH RECURSIVE
wanted (queue) AS (
    SELECT DISTINCT value FROM json_each(?1)
    WHERE value NOT IN (SELECT queue FROM jobs_pause)
),
found (queue, route, place, id) AS (
    SELECT wanted.queue, job.route, job.place, job.id
    FROM wanted
    CROSS JOIN jobs_routed AS job ON job.id = (
        SELECT next.id FROM jobs_routed AS next
        WHERE next.state = 'ready' AND next.queue = wanted.queue
        ORDER BY next.route, next.place, next.id LIMIT 1
    )
    UNION ALL
    SELECT found.queue, job.route, job.place, job.id
    FROM found
    CROSS JOIN jobs_routed AS job ON job.id = (
        SELECT next.id FROM jobs_routed AS next
        WHERE next.state = 'ready' AND next.queue = found.queue AND next.route > found.route
        ORDER BY next.route, next.place, next.id LIMIT 1
    )
)
SELECT queue, route, place, id FROM found ORDER BY queue, route
