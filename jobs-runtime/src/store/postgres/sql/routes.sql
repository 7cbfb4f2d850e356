-- The routes that have ready jobs in these queues, each with its first job: one step in the index for
-- each, however many jobs it has. A paused queue has none.
-- $1 array of queues, each once.
WITH RECURSIVE
wanted AS (
    SELECT asked.queue FROM unnest($1::text[]) AS asked (queue)
    WHERE NOT EXISTS (SELECT FROM {schema}.pause WHERE pause.queue = asked.queue)
),
found (queue, route, place, id) AS (
    SELECT wanted.queue, first.route, first.place, first.id
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT job.route, job.place, job.id FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = wanted.queue
        ORDER BY job.queue, job.route, job.place, job.id LIMIT 1
    ) AS first
    UNION ALL
    SELECT found.queue, next.route, next.place, next.id
    FROM found
    CROSS JOIN LATERAL (
        SELECT job.route, job.place, job.id FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = found.queue AND job.route > found.route
        ORDER BY job.queue, job.route, job.place, job.id LIMIT 1
    ) AS next
)
SELECT queue, route, place, id FROM found ORDER BY queue COLLATE "C", route
