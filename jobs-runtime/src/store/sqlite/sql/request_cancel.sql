-- Asks for the cancel of runs, each under its claim number.
-- ?1 array of [job, claim number].
INSERT OR REPLACE INTO jobs_cancel_request (job_id, claim_number)
SELECT value ->> 0, value ->> 1 FROM json_each(?1)
