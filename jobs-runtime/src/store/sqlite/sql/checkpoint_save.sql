-- Saves checkpoints that moved, in their text or their versions, each under the next number.
-- Answers which ones did.
-- ?1 array of [job, claim number, version, min_reader, text].
INSERT INTO jobs_checkpoint (job_id, version, min_reader, text)
SELECT job.id, run.value ->> 2, run.value ->> 3, run.value ->> 4
FROM json_each(?1) AS run
CROSS JOIN jobs_job AS job
    ON job.id = run.value ->> 0 AND job.claim_number = run.value ->> 1 AND job.state = 'running'
WHERE true
ON CONFLICT (job_id) DO UPDATE SET
    version = excluded.version,
    min_reader = excluded.min_reader,
    text = excluded.text,
    number = CASE WHEN number < 9223372036854775807 THEN number + 1 ELSE number END
WHERE (jobs_checkpoint.version, jobs_checkpoint.min_reader, jobs_checkpoint.text)
    IS NOT (excluded.version, excluded.min_reader, excluded.text)
RETURNING job_id, number
