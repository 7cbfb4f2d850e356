-- What the rows say of jobs, once the transactions in flight that touch them have ended.
-- $1 array of job ids, in order.
SELECT job.id, job.claim_number, job.state, job.failures, job.interruptions, job.crashes,
    job.refusals, job.snoozes
FROM unnest($1::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT job.* FROM {schema}.job AS job WHERE job.id = wanted.id FOR SHARE
) AS job
