-- Makes the scheduled jobs among these ready, due now at the latest; answers which, with the number of
-- their event.
-- Rows are locked in order of key, as an enqueue of unique jobs locks those that are there: two that wait for
-- rows never wait for each other.
-- $1 array of job ids.
WITH scheduled AS MATERIALIZED (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.id = ANY ($1::bigint[]) AND job.state = 'scheduled'
    ORDER BY job.unique_key COLLATE "C" NULLS FIRST, job.kind, job.id
    FOR NO KEY UPDATE
)
UPDATE {schema}.job
SET state = 'ready', events = greatest(0, least(events, 9223372036854775806)) + 1,
    due_at_us = least(
        due_at_us, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    )
WHERE id = ANY (ARRAY (SELECT id FROM scheduled))
RETURNING id, claim_number, events
