-- Writes clean successes of rows that nothing ever happened to: nearly all. Whose fence does not hold, or
-- whose row has something to be reset, is for settle_done.sql: setting seven columns to what they are
-- costs more than this guard. Answers which it has left, so mostly nothing: a row for each that it wrote
-- costs both sides.
-- The state is compared in a way that hides it from the planner: the rows are to be found by their
-- numbers, and not by walking the index of running ones.
-- Arrays: $1 job, $2 claim number.
WITH written AS MATERIALIZED (
    UPDATE {schema}.job
    SET state = 'succeeded',
        finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    WHERE id = ANY ($1::bigint[]) AND state || '' = 'running'
        AND ((id, claim_number) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))) IS TRUE
        AND (failures | interruptions | crashes | refusals | snoozes) = 0 AND refused_reason IS NULL
    RETURNING id, claim_number
)
SELECT run.nth - 1 AS element
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS run (id, claim_number, nth)
WHERE (SELECT count(*) FROM written) < cardinality($1::bigint[])
    AND ((run.id, run.claim_number) IN (SELECT id, claim_number FROM written)) IS NOT TRUE
