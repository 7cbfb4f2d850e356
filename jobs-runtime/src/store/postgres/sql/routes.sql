-- The routes that have ready jobs in these queues: one step in the index for each, however many
-- jobs it has. A paused queue has none.
-- $1 array of queues, each once.
WITH RECURSIVE
wanted AS (
    SELECT asked.queue FROM unnest($1::text[]) AS asked (queue)
    WHERE NOT EXISTS (SELECT FROM {schema}.pause WHERE pause.queue = asked.queue)
),
found (queue, route) AS (
    SELECT wanted.queue, (
        SELECT job.route FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = wanted.queue
        ORDER BY job.queue, job.route LIMIT 1
    )
    FROM wanted
    UNION ALL
    SELECT found.queue, (
        SELECT job.route FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = found.queue AND job.route > found.route
        ORDER BY job.queue, job.route LIMIT 1
    )
    FROM found
    WHERE found.route IS NOT NULL
)
SELECT queue, route FROM found WHERE route IS NOT NULL ORDER BY queue COLLATE "C", route
