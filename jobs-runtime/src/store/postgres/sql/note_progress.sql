-- Writes how far runs have come where their fences hold. Locked rows are stepped over.
-- Answers which were written.
-- The state is compared in a way that hides it from the planner: the rows are to be found by their
-- numbers, and not by walking the index of running ones.
-- Arrays in order of job, each job once: $1 job, $2 claim number, $3 text.
WITH held AS MATERIALIZED (
    SELECT run.id, run.text, run.nth
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY
        AS run (id, claim_number, text, nth)
    CROSS JOIN LATERAL (
        SELECT FROM {schema}.job AS job
        WHERE job.id = run.id AND job.claim_number = run.claim_number AND job.state || '' = 'running'
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS job
),
noted AS (
    UPDATE {schema}.job SET progress = (SELECT held.text FROM held WHERE held.id = job.id)
    WHERE id = ANY (ARRAY (SELECT held.id FROM held))
)
SELECT held.nth - 1 AS element FROM held
