-- How many jobs of each queue run.
SELECT queue, count(*) AS jobs FROM jobs_job WHERE state = 'running' GROUP BY queue
