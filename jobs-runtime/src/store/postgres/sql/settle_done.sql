-- Writes clean successes: no counter, no error, no refusal, no event. Answers which it has left, since
-- their fence does not hold.
-- The state is compared in a way that hides it from the planner: the rows are to be found by their
-- numbers, and not by walking the index of running ones.
-- Arrays: $1 job, $2 claim number.
WITH written AS MATERIALIZED (
    UPDATE {schema}.job
    SET state = 'succeeded', failures = 0, interruptions = 0, crashes = 0, refusals = 0, snoozes = 0,
        refused_reason = NULL, refused_build = NULL,
        finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    WHERE id = ANY ($1::bigint[]) AND state || '' = 'running'
        AND ((id, claim_number) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))) IS TRUE
    RETURNING id, claim_number
)
SELECT run.nth - 1 AS element
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS run (id, claim_number, nth)
WHERE (SELECT count(*) FROM written) < cardinality($1::bigint[])
    AND ((run.id, run.claim_number) IN (SELECT id, claim_number FROM written)) IS NOT TRUE
