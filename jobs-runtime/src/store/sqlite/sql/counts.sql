-- How many jobs share a queue, a kind, a version and a state.
SELECT queue, kind, version, state, count(*) AS jobs
FROM jobs_job
GROUP BY queue, kind, version, state
