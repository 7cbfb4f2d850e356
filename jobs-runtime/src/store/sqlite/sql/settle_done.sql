-- Writes clean successes: no counter, no error, no refusal, no event. A fence that does not hold
-- changes nothing; the number of rows tells whether all did.
-- ?1 object of claim numbers by job (an array of pairs would be parsed pair by pair), ?2 now in
-- microseconds.
UPDATE jobs_job
SET state = 'succeeded', finished_at_us = ?2, failures = 0, interruptions = 0, crashes = 0,
    refusals = 0, snoozes = 0, refused_reason = NULL, refused_build = NULL
FROM json_each(?1) AS run
WHERE jobs_job.id = CAST(run.key AS INTEGER) AND jobs_job.claim_number = run.value
    AND jobs_job.state = 'running'
