-- Deletes the checkpoints of jobs: pruned ones, or redriven ones that start anew.
-- ?1 array of job ids.
DELETE FROM jobs_checkpoint WHERE job_id IN (SELECT value FROM json_each(?1))
