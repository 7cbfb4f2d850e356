-- The routes of scheduled jobs that a build gave back unread: one step in the index for each.
WITH RECURSIVE found (route) AS (
    SELECT (
        SELECT route FROM jobs_routed
        WHERE state = 'scheduled' AND refused_reason IS NOT NULL
        ORDER BY route LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT route FROM jobs_routed
        WHERE state = 'scheduled' AND refused_reason IS NOT NULL AND route > found.route
        ORDER BY route LIMIT 1
    )
    FROM found
    WHERE found.route IS NOT NULL
)
SELECT route FROM found WHERE route IS NOT NULL
