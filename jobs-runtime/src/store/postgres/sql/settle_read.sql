-- Locks the runs among these whose fence holds, and reads what decides how they are settled: a
-- request to cancel, a waiting twin, and how many events were written before. Locked rows are
-- stepped over.
-- Arrays in order of job: $1 job, $2 claim number.
SELECT
    run.nth - 1 AS element,
    job.events,
    EXISTS (
        SELECT FROM {schema}.cancel_request AS cancel
        WHERE cancel.job_id = run.id AND cancel.claim_number = run.claim_number
    ) AS is_cancel_requested,
    job.kind,
    job.unique_key,
    (
        SELECT twin.id FROM {schema}.job AS twin
        WHERE twin.kind = job.kind AND twin.unique_key = job.unique_key
            AND twin.unique_key IS NOT NULL AND twin.state IN ('scheduled', 'ready')
        LIMIT 1
    ) AS twin
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS run (id, claim_number, nth)
CROSS JOIN LATERAL (
    SELECT job.events, job.kind, job.unique_key FROM {schema}.job AS job
    WHERE job.id = run.id AND job.claim_number = run.claim_number AND job.state = 'running'
    FOR NO KEY UPDATE SKIP LOCKED
) AS job
