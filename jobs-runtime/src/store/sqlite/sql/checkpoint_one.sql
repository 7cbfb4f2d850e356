-- Saves one checkpoint where its fence holds, it moves, the job's row has nothing to be reset and
-- nobody asked to cancel the run: the way of nearly all. Writes nothing where any of that is not so;
-- the number of rows tells. (An answer would wake the caller twice: for it, and for the commit.)
-- ?1 job, ?2 claim number, ?3 version, ?4 min_reader, ?5 text, ?6 whether the failures stay.
INSERT INTO jobs_checkpoint (job_id, version, min_reader, text)
SELECT id, ?3, ?4, ?5 FROM jobs_job
WHERE id = ?1 AND claim_number = ?2 AND state = 'running'
    AND checkpoints > 0 AND interruptions = 0 AND crashes = 0 AND (failures = 0 OR ?6)
    AND NOT EXISTS (
        SELECT 1 FROM jobs_cancel_request AS cancel
        WHERE cancel.job_id = ?1 AND cancel.claim_number = ?2
    )
ON CONFLICT (job_id) DO UPDATE SET
    version = excluded.version,
    min_reader = excluded.min_reader,
    text = excluded.text,
    number = CASE WHEN number < 9223372036854775807 THEN number + 1 ELSE number END
WHERE (jobs_checkpoint.version, jobs_checkpoint.min_reader, jobs_checkpoint.text)
    IS NOT (excluded.version, excluded.min_reader, excluded.text)
