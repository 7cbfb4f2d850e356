-- Ends waiting jobs that no run may start of any more; each has one event more. Locked rows are
-- stepped over.
-- $1 limit, $2 error class, $3 error text.
WITH over AS MATERIALIZED (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.expires_at_us <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
        AND job.expires_at_us IS NOT NULL AND job.state IN ('scheduled', 'ready')
    ORDER BY job.expires_at_us, job.id
    LIMIT $1::bigint
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.job
SET state = 'dead', error_class = $2, error_text = $3,
    events = greatest(0, least(events, 9223372036854775806)) + 1,
    finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE id = ANY (ARRAY (SELECT id FROM over))
RETURNING id, claim_number, events
