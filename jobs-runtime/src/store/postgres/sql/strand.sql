-- Ends the waiting jobs of these routes whose deadline has passed as dead; answers which, with the
-- number of their event. Locked rows are stepped over. Walks the waiting jobs of these routes: one step
-- in the index for each queue that has ready jobs, and for each job.
-- $1 array of routes, $2 how long they have waited, in microseconds, $3 limit, $4 class, $5 text.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
),
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
stranded AS MATERIALIZED (
    (
        SELECT next.at
        FROM unnest($1::text[]) AS wanted (route)
        CROSS JOIN named
        CROSS JOIN LATERAL (
            SELECT job.ctid AS at FROM {schema}.job AS job
            WHERE job.state = 'ready' AND job.queue = named.queue AND job.route = wanted.route
                AND CASE WHEN job.refused_reason IS NULL THEN job.due_at_us
                    ELSE job.enqueued_at_us END <= (SELECT now_us FROM clock) - $2::bigint
            ORDER BY job.queue, job.route, job.place, job.id
            LIMIT $3::bigint
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS next
        LIMIT $3::bigint
    )
    UNION ALL
    (
        SELECT next.at
        FROM unnest($1::text[]) AS wanted (route)
        CROSS JOIN LATERAL (
            SELECT job.ctid AS at FROM {schema}.job AS job
            WHERE job.state = 'scheduled' AND job.refused_reason IS NOT NULL
                AND job.route = wanted.route
                AND job.enqueued_at_us <= (SELECT now_us FROM clock) - $2::bigint
            ORDER BY job.route, job.id
            LIMIT $3::bigint
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS next
        LIMIT $3::bigint
    )
    LIMIT $3::bigint
)
UPDATE {schema}.job
SET state = 'dead', finished_at_us = (SELECT now_us FROM clock), error_class = $4, error_text = $5,
    events = greatest(0, least(events, 9223372036854775806)) + 1
WHERE ctid = ANY (ARRAY (SELECT at FROM stranded))
RETURNING id, claim_number, events
