-- Writes how far runs have come where their fences hold. Answers which were written.
-- ?1 array of [job, claim number, text], each job once.
UPDATE jobs_job
SET progress = run.value ->> 2
FROM json_each(?1) AS run
WHERE jobs_job.id = run.value ->> 0 AND jobs_job.claim_number = run.value ->> 1
    AND jobs_job.state = 'running'
RETURNING id, claim_number
