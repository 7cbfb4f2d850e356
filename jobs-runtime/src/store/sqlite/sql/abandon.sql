-- Marks runs as abandoned by their worker.
-- ?1 object of job id and claim number.
INSERT OR REPLACE INTO jobs_abandoned (job_id, claim_number)
SELECT CAST(key AS INTEGER), value FROM json_each(?1)
