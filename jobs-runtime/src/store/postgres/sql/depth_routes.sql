-- Each queue and route that has ready jobs: how many, up to a limit, and when the first fell due. One step
-- in the index for each and for what is counted, however many jobs there are.
-- $1 limit.
WITH RECURSIVE
named (queue) AS (
    (SELECT job.queue FROM {schema}.job AS job WHERE job.state = 'ready' ORDER BY job.queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.queue FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue > named.queue
        ORDER BY job.queue LIMIT 1
    )
    FROM named
    WHERE named.queue IS NOT NULL
),
found (queue, route) AS (
    SELECT named.queue, (
        SELECT job.route FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = named.queue
        ORDER BY job.queue, job.route LIMIT 1
    )
    FROM named
    WHERE named.queue IS NOT NULL
    UNION ALL
    SELECT found.queue, (
        SELECT job.route FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = found.queue AND job.route > found.route
        ORDER BY job.queue, job.route LIMIT 1
    )
    FROM found
    WHERE found.route IS NOT NULL
)
SELECT
    found.queue,
    (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM {schema}.job AS job
            WHERE job.state = 'ready' AND job.queue = found.queue AND job.route = found.route
            ORDER BY job.queue, job.route, job.place LIMIT $1::bigint
        ) AS counted
    ) AS jobs,
    head.due_at_us AS head_due_at_us
FROM found
CROSS JOIN LATERAL (
    SELECT job.due_at_us FROM {schema}.job AS job
    WHERE job.state = 'ready' AND job.queue = found.queue AND job.route = found.route
    ORDER BY job.queue, job.route, job.place, job.id LIMIT 1
) AS head
WHERE found.route IS NOT NULL
