-- Makes scheduled jobs that are due ready, oldest first, and answers how many and how long until
-- the next one is due. Locked rows are stepped over.
-- $1 limit.
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
),
due AS MATERIALIZED (
    SELECT job.ctid AS at FROM {schema}.job AS job
    WHERE job.state = 'scheduled' AND job.due_at_us <= (SELECT now_us FROM clock)
    ORDER BY job.due_at_us, job.id
    LIMIT $1::bigint
    FOR NO KEY UPDATE SKIP LOCKED
),
promoted AS (
    UPDATE {schema}.job SET state = 'ready'
    WHERE ctid = ANY (ARRAY (SELECT at FROM due))
    RETURNING id
)
SELECT
    (SELECT count(*) FROM promoted) AS promoted,
    (
        SELECT greatest(job.due_at_us, clock.now_us) - clock.now_us FROM {schema}.job AS job
        WHERE job.state = 'scheduled'
        ORDER BY job.due_at_us, job.id
        OFFSET (SELECT count(*) FROM promoted)
        LIMIT 1
    ) AS next_in_us
FROM clock
