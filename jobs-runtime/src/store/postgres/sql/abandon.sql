-- Marks those of these runs that a worker holds as abandoned by it, and answers which.
-- $1 worker; arrays: $2 job, $3 claim number.
INSERT INTO {schema}.abandoned (job_id, claim_number)
SELECT job.id, job.claim_number
FROM unnest($2::bigint[], $3::bigint[]) AS run (job_id, claim_number)
JOIN {schema}.job AS job ON job.id = run.job_id AND job.claim_number = run.claim_number
WHERE job.state = 'running' AND job.worker_id = $1
ON CONFLICT (job_id) DO UPDATE SET claim_number = excluded.claim_number
RETURNING job_id
