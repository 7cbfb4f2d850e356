-- The runs among these that hold their claim, and whether someone asked to cancel them.
-- Arrays: $1 job, $2 claim number.
SELECT
    run.nth - 1 AS element,
    EXISTS (
        SELECT FROM {schema}.cancel_request AS cancel
        WHERE cancel.job_id = run.id AND cancel.claim_number = run.claim_number
    ) AS is_cancel_requested
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS run (id, claim_number, nth)
CROSS JOIN LATERAL (
    SELECT FROM {schema}.job AS job
    WHERE job.id = run.id AND job.claim_number = run.claim_number AND job.state = 'running'
) AS job
