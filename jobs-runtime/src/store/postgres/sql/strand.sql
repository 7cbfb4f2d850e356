-- Ends the waiting jobs of these routes whose deadline has passed as dead; answers which, with the
-- number of their event. Locked rows are stepped over. Walks the waiting jobs, by their indexes and
-- not by id, which finished ones have too: it is asked seldom, and only where a worker has a deadline.
-- $1 array of routes, $2 how long they have waited, in microseconds, $3 limit, $4 class, $5 text.
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
),
stranded AS MATERIALIZED (
    SELECT job.id FROM {schema}.job AS job
    WHERE (
            (job.state = 'ready' AND job.route = ANY ($1::text[]))
            OR (
                job.state = 'scheduled' AND job.refused_reason IS NOT NULL
                AND job.route = ANY ($1::text[])
            )
        )
        AND CASE WHEN job.refused_reason IS NULL THEN job.due_at_us ELSE job.enqueued_at_us END
            <= (SELECT now_us FROM clock) - $2::bigint
    ORDER BY job.id + 0
    LIMIT $3::bigint
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.job
SET state = 'dead', finished_at_us = (SELECT now_us FROM clock), error_class = $4, error_text = $5,
    events = greatest(0, least(events, 9223372036854775806)) + 1
WHERE id = ANY (ARRAY (SELECT id FROM stranded))
RETURNING id, claim_number, events
