-- The states of jobs.
-- $1 array of job ids.
SELECT id, state FROM {schema}.job WHERE id = ANY ($1::bigint[])
