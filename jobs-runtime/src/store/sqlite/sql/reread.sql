-- What the rows say of runs.
-- ?1 array of job ids.
SELECT
    run.key AS element, job.claim_number, job.state, job.failures, job.interruptions, job.crashes,
    job.refusals, job.snoozes
FROM json_each(?1) AS run
CROSS JOIN jobs_job AS job ON job.id = run.value
