-- The checkpoints of jobs that were just claimed.
-- $1 array of job ids.
SELECT job_id, version, min_reader, text, number
FROM {schema}.checkpoint
WHERE job_id = ANY ($1::bigint[])
