-- Saves one checkpoint where its fence holds, it moves, and the job's row has nothing to be reset: the
-- way of nearly all. Answers whether someone asked to cancel the run; nothing where any of that is not
-- so, and then nothing was written.
-- ?1 job, ?2 claim number, ?3 version, ?4 min_reader, ?5 text, ?6 whether the failures stay.
INSERT INTO jobs_checkpoint (job_id, version, min_reader, text)
SELECT id, ?3, ?4, ?5 FROM jobs_job
WHERE id = ?1 AND claim_number = ?2 AND state = 'running'
    AND checkpoints > 0 AND interruptions = 0 AND crashes = 0 AND (failures = 0 OR ?6)
ON CONFLICT (job_id) DO UPDATE SET
    version = excluded.version,
    min_reader = excluded.min_reader,
    text = excluded.text,
    number = CASE WHEN number < 9223372036854775807 THEN number + 1 ELSE number END
WHERE (jobs_checkpoint.version, jobs_checkpoint.min_reader, jobs_checkpoint.text)
    IS NOT (excluded.version, excluded.min_reader, excluded.text)
RETURNING EXISTS (
    SELECT 1 FROM jobs_cancel_request AS cancel
    WHERE cancel.job_id = ?1 AND cancel.claim_number = ?2
)
