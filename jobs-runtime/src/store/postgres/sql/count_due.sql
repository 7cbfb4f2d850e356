-- How many jobs of each route are due in any queue, ready or given back unread, up to a limit. One step in
-- the index for each queue that has ready jobs, and for what is counted.
-- $1 array of routes, $2 limit.
WITH RECURSIVE named (queue) AS (
    (SELECT job.queue FROM {schema}.job AS job WHERE job.state = 'ready' ORDER BY job.queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.queue FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue > named.queue
        ORDER BY job.queue LIMIT 1
    )
    FROM named
    WHERE named.queue IS NOT NULL
)
SELECT least(
    $2::bigint,
    (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM named
            CROSS JOIN LATERAL (
                SELECT 1 AS one FROM {schema}.job AS job
                WHERE job.state = 'ready' AND job.queue = named.queue AND job.route = wanted.route
                ORDER BY job.queue, job.route, job.place LIMIT $2::bigint
            ) AS ready
            LIMIT $2::bigint
        ) AS counted
    ) + (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM {schema}.job AS job
            WHERE job.state = 'scheduled' AND job.refused_reason IS NOT NULL
                AND job.route = wanted.route
            ORDER BY job.route, job.id LIMIT $2::bigint
        ) AS counted
    )
) AS jobs
FROM unnest($1::text[]) WITH ORDINALITY AS wanted (route, nth)
ORDER BY wanted.nth
