-- What decides what a person may do to jobs, and a twin other than the job itself: one that waits, or one that runs and binds their key
-- meanwhile.
-- ?1 array of job ids.
SELECT
    wanted.key AS element, job.state, job.claim_number, job.events, job.kind, job.unique_key,
    job.finished_at_us,
    coalesce(
        (
            SELECT twin.id FROM jobs_job AS twin
            WHERE twin.kind = job.kind AND twin.unique_key = job.unique_key
                AND twin.unique_key IS NOT NULL AND twin.state IN ('scheduled', 'ready')
                AND twin.id <> job.id
        ),
        (
            SELECT twin.id FROM jobs_job AS twin
            WHERE job.unique_while IS NOT NULL
                AND twin.kind = job.kind AND twin.unique_key = job.unique_key
                AND twin.unique_while IS NOT NULL
                AND twin.state IN ('scheduled', 'ready', 'running') AND twin.state = 'running'
                AND twin.id <> job.id
            LIMIT 1
        )
    ) AS twin
FROM json_each(?1) AS wanted
CROSS JOIN jobs_job AS job ON job.id = wanted.value
