-- What the rows say of jobs that no transaction in flight touches. Locked rows are stepped over.
-- $1 array of job ids, in order.
SELECT job.id, job.claim_number, job.state, job.failures, job.interruptions, job.crashes,
    job.refusals, job.snoozes
FROM unnest($1::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT job.* FROM {schema}.job AS job WHERE job.id = wanted.id FOR SHARE SKIP LOCKED
) AS job
