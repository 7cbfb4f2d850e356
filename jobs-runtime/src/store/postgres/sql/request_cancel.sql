-- Asks for the cancel of the running jobs among these; never waits for their rows.
-- $1 array of job ids.
INSERT INTO {schema}.cancel_request (job_id, claim_number)
SELECT job.id, job.claim_number FROM {schema}.job AS job
WHERE job.id = ANY ($1::bigint[]) AND job.state = 'running'
ORDER BY job.id
ON CONFLICT (job_id) DO UPDATE SET claim_number = excluded.claim_number
