-- How many jobs there are of each queue, kind, version and state, in that order.
SELECT queue, kind, version, state, count(*) AS jobs
FROM {schema}.job
GROUP BY queue, kind, version, state
