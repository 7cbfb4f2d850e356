-- Deletes finished jobs. Answers which ones.
-- ?1 array of job ids.
DELETE FROM jobs_job
WHERE id IN (SELECT value FROM json_each(?1)) AND state IN ('succeeded', 'cancelled', 'dead')
RETURNING id
