-- The states of jobs, once the settlements in flight that touch them have ended.
-- $1 array of job ids, in order.
SELECT job.id, job.state
FROM unnest($1::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT job.id, job.state FROM {schema}.job AS job WHERE job.id = wanted.id FOR SHARE
) AS job
