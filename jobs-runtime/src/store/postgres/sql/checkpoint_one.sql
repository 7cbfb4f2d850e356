-- Saves one checkpoint where its fence holds, it moves, and the job's row has nothing to be reset: the
-- way of nearly all. Answers whether someone asked to cancel the run; nothing where any of that is not
-- so, or the row is locked, and then nothing was written.
-- The state is compared in a way that hides it from the planner: see settle_done.sql.
-- $1 job, $2 claim number, $3 version, $4 min_reader, $5 text, $6 whether the failures stay.
WITH held AS MATERIALIZED (
    SELECT job.id FROM {schema}.job AS job
    WHERE job.id = $1::bigint AND job.claim_number = $2::bigint AND job.state || '' = 'running'
        AND job.checkpoints > 0 AND job.interruptions = 0 AND job.crashes = 0
        AND (job.failures = 0 OR $6::boolean)
    FOR NO KEY UPDATE SKIP LOCKED
)
INSERT INTO {schema}.checkpoint AS saved (job_id, number, version, min_reader, text)
SELECT held.id, 1, $3::text, $4::text, $5::text FROM held
ON CONFLICT (job_id) DO UPDATE SET
    number = least(saved.number, 9223372036854775806) + 1, version = excluded.version,
    min_reader = excluded.min_reader, text = excluded.text
WHERE saved.text <> excluded.text OR saved.version <> excluded.version
    OR saved.min_reader IS DISTINCT FROM excluded.min_reader
RETURNING EXISTS (
    SELECT FROM {schema}.cancel_request AS cancel
    WHERE cancel.job_id = $1 AND cancel.claim_number = $2
) AS is_cancel_requested
