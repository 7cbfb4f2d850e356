-- Saves checkpoints where their fences hold. One that moved resets the interruptions and crashes of
-- its job, and the failures unless it says otherwise; a row of which that is known already is not
-- written again. Locked rows are stepped over.
-- Answers whose fence held, and whether someone asked to cancel the run.
-- The state is compared in a way that hides it from the planner: the rows are to be found by their
-- numbers, and not by walking the index of running ones.
-- Arrays in order of job: $1 job, $2 claim number, $3 version, $4 min_reader, $5 text,
-- $6 whether the failures stay.
WITH held AS MATERIALIZED (
    SELECT run.*, EXISTS (
        SELECT FROM {schema}.checkpoint AS saved
        WHERE saved.job_id = run.id AND saved.version = run.version
            AND saved.min_reader IS NOT DISTINCT FROM run.min_reader AND saved.text = run.text
    ) AS is_same,
    job.checkpoints = 0 OR job.interruptions <> 0 OR job.crashes <> 0
        OR (job.failures <> 0 AND NOT run.keeps_failures) AS is_news
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::boolean[])
        WITH ORDINALITY
        AS run (id, claim_number, version, min_reader, text, keeps_failures, nth)
    CROSS JOIN LATERAL (
        SELECT job.checkpoints, job.interruptions, job.crashes, job.failures
        FROM {schema}.job AS job
        WHERE job.id = run.id AND job.claim_number = run.claim_number AND job.state || '' = 'running'
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS job
),
saved AS (
    INSERT INTO {schema}.checkpoint AS saved (job_id, number, version, min_reader, text)
    SELECT held.id, 1, held.version, held.min_reader, held.text FROM held WHERE NOT held.is_same
    ON CONFLICT (job_id) DO UPDATE SET
        number = least(saved.number, 9223372036854775806) + 1, version = excluded.version,
        min_reader = excluded.min_reader, text = excluded.text
),
moved AS (
    UPDATE {schema}.job
    SET interruptions = 0, crashes = 0,
        checkpoints = least(checkpoints, 9223372036854775806) + 1,
        failures = CASE
            WHEN id = ANY (ARRAY (SELECT id FROM held WHERE keeps_failures)) THEN failures
            ELSE 0
        END
    WHERE id = ANY (ARRAY (SELECT id FROM held WHERE NOT is_same AND is_news))
)
SELECT
    held.nth - 1 AS element,
    EXISTS (
        SELECT FROM {schema}.cancel_request AS cancel
        WHERE cancel.job_id = held.id AND cancel.claim_number = held.claim_number
    ) AS is_cancel_requested
FROM held
