-- The waiting jobs of these routes whose deadline has passed. Walks the waiting jobs of these routes: one
-- step in the index for each queue that has ready jobs, and for each job.
-- ?1 array of routes, ?2 has waited since before, in microseconds, ?3 limit.
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
due (id) AS (
    SELECT ready.id
    FROM json_each(?1) AS wanted CROSS JOIN named CROSS JOIN jobs_routed AS ready
    WHERE ready.state = 'ready' AND ready.queue = named.queue AND ready.route = wanted.value
    UNION ALL
    SELECT refused.id
    FROM json_each(?1) AS wanted CROSS JOIN jobs_routed AS refused
    WHERE refused.state = 'scheduled' AND refused.refused_reason IS NOT NULL
        AND refused.route = wanted.value
)
SELECT job.id, job.claim_number, job.events
FROM due
CROSS JOIN jobs_job AS job ON job.id = due.id
WHERE CASE WHEN job.refused_reason IS NULL THEN job.due_at_us ELSE job.enqueued_at_us END <= ?2
LIMIT ?3 + 0
