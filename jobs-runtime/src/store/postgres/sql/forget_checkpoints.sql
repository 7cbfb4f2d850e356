-- Forgets the checkpoints of jobs.
-- $1 array of job ids.
DELETE FROM {schema}.checkpoint WHERE job_id = ANY ($1::bigint[])
