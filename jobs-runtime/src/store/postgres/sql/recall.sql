-- Makes the refused jobs of these routes ready at once, oldest first; answers how many. Locked rows
-- are stepped over.
-- $1 array of routes, $2 limit.
WITH recalled AS MATERIALIZED (
    SELECT next.at
    FROM unnest($1::text[]) AS wanted (route)
    CROSS JOIN LATERAL (
        SELECT job.ctid AS at, job.id FROM {schema}.job AS job
        WHERE job.state = 'scheduled' AND job.refused_reason IS NOT NULL
            AND job.route = wanted.route
        ORDER BY job.route, job.id
        LIMIT $2::bigint
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS next
    ORDER BY next.id
    LIMIT $2::bigint
),
ready AS (
    UPDATE {schema}.job
    SET state = 'ready',
        due_at_us = least(
            due_at_us, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
        )
    WHERE ctid = ANY (ARRAY (SELECT at FROM recalled))
    RETURNING id
)
SELECT count(*) FROM ready
