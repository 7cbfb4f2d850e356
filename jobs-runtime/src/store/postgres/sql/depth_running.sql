-- How many jobs of each queue run.
SELECT queue, count(*) AS jobs FROM {schema}.job WHERE state = 'running' GROUP BY queue
