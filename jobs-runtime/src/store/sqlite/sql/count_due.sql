-- How many jobs of each route are due in any queue, ready or given back unread, up to a limit. One step in
-- the index for each queue that has ready jobs, and for what is counted.
-- ?1 array of routes, ?2 limit.
WITH RECURSIVE named (queue) AS (
    SELECT (SELECT queue FROM jobs_routed WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT queue FROM jobs_routed
        WHERE state = 'ready' AND queue > named.queue
        ORDER BY queue LIMIT 1
    )
    FROM named
    WHERE named.queue IS NOT NULL
)
SELECT min(
    ?2,
    (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM named CROSS JOIN jobs_routed AS ready
            WHERE ready.state = 'ready' AND ready.queue = named.queue
                AND ready.route = wanted.value
            LIMIT ?2 + 0
        )
    ) + (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM jobs_routed AS refused
            WHERE refused.state = 'scheduled' AND refused.refused_reason IS NOT NULL
                AND refused.route = wanted.value
            LIMIT ?2 + 0
        )
    )
) AS jobs
FROM json_each(?1) AS wanted
ORDER BY wanted.key
