-- What decides how runs are settled, for those whose fence holds: a request to cancel, a waiting
-- twin, and how many events were written before.
-- ?1 array of [job, claim number].
SELECT
    run.key AS element,
    job.events,
    cancel.job_id IS NOT NULL AS is_cancel_requested,
    job.kind,
    job.unique_key,
    (
        SELECT twin.id FROM jobs_job AS twin
        WHERE twin.kind = job.kind AND twin.unique_key = job.unique_key
            AND twin.unique_key IS NOT NULL AND twin.state IN ('scheduled', 'ready')
    ) AS twin
FROM json_each(?1) AS run
CROSS JOIN jobs_job AS job
    ON job.id = run.value ->> 0 AND job.claim_number = run.value ->> 1 AND job.state = 'running'
LEFT JOIN jobs_cancel_request AS cancel
    ON cancel.job_id = job.id AND cancel.claim_number = job.claim_number
