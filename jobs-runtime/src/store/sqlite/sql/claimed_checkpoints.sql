-- The checkpoints of jobs that were just claimed.
-- ?1 array of job ids.
SELECT saved.job_id, saved.version, saved.min_reader, saved.text, saved.number
FROM json_each(?1) AS wanted
CROSS JOIN jobs_checkpoint AS saved ON saved.job_id = wanted.value
