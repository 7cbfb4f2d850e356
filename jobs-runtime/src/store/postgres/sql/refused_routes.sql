-- The routes of scheduled jobs that a build gave back unread: one step in the index for each.
WITH RECURSIVE found (route) AS (
    SELECT (
        SELECT job.route FROM {schema}.job AS job
        WHERE job.state = 'scheduled' AND job.refused_reason IS NOT NULL
        ORDER BY job.route LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.route FROM {schema}.job AS job
        WHERE job.state = 'scheduled' AND job.refused_reason IS NOT NULL
            AND job.route > found.route
        ORDER BY job.route LIMIT 1
    )
    FROM found
    WHERE found.route IS NOT NULL
)
SELECT route FROM found WHERE route IS NOT NULL ORDER BY route
