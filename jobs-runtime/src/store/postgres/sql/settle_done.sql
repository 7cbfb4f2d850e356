-- Writes clean successes: no counter, no error, no refusal, no event. Answers whose fence held.
-- Arrays in order of job: $1 job, $2 claim number.
UPDATE {schema}.job AS job
SET state = 'succeeded', worker_id = NULL, failures = 0, interruptions = 0, crashes = 0,
    refusals = 0, snoozes = 0, refused_reason = NULL, refused_build = NULL,
    finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
FROM unnest($1::bigint[], $2::bigint[]) AS run (id, claim_number)
WHERE job.id = run.id AND job.claim_number = run.claim_number AND job.state = 'running'
RETURNING job.id
