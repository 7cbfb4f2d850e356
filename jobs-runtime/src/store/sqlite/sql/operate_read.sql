-- What decides what a person may do to jobs, and a waiting twin other than the job itself.
-- ?1 array of job ids.
SELECT
    wanted.key AS element, job.state, job.claim_number, job.events, job.kind, job.unique_key,
    job.finished_at_us,
    (
        SELECT twin.id FROM jobs_job AS twin
        WHERE twin.kind = job.kind AND twin.unique_key = job.unique_key
            AND twin.unique_key IS NOT NULL AND twin.state IN ('scheduled', 'ready')
            AND twin.id <> job.id
    ) AS twin
FROM json_each(?1) AS wanted
CROSS JOIN jobs_job AS job ON job.id = wanted.value
