-- Marks the runs that a worker still holds when it closes, because other transactions have locked their
-- rows, as abandoned by it: so that a sweep settles them as given up. Waits for none of those rows.
-- $1 worker.
INSERT INTO {schema}.abandoned (job_id, claim_number)
SELECT job.id, job.claim_number
FROM {schema}.job AS job
WHERE job.state = 'running' AND job.worker_id = $1
ON CONFLICT (job_id) DO UPDATE SET claim_number = excluded.claim_number
