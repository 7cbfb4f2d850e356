-- Writes clean successes: no counter, no error, no refusal, no event. Answers whose fence held.
-- ?1 array of [job, claim number], ?2 now in microseconds.
UPDATE jobs_job
SET state = 'succeeded', finished_at_us = ?2, worker_id = NULL, failures = 0, interruptions = 0,
    crashes = 0, refusals = 0, snoozes = 0, refused_reason = NULL, refused_build = NULL
WHERE state = 'running'
    AND (id, claim_number) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
RETURNING id, claim_number
