-- Locks the refused jobs of these routes, oldest first. Locked rows are stepped over.
-- $1 limit, $2 array of routes.
SELECT next.id
FROM unnest($2::text[]) AS wanted (route)
CROSS JOIN LATERAL (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.state = 'scheduled' AND job.refused_reason IS NOT NULL
        AND job.route = wanted.route
    ORDER BY job.route, job.id
    LIMIT $1::bigint
    FOR NO KEY UPDATE SKIP LOCKED
) AS next
ORDER BY next.id
LIMIT $1::bigint
