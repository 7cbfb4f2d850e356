-- The runs among these that hold their claim, and whether someone asked to cancel them.
-- ?1 array of [job, claim number].
SELECT run.key AS element, cancel.job_id IS NOT NULL AS is_cancel_requested
FROM json_each(?1) AS run
CROSS JOIN jobs_job AS job
    ON job.id = run.value ->> 0 AND job.claim_number = run.value ->> 1 AND job.state = 'running'
LEFT JOIN jobs_cancel_request AS cancel
    ON cancel.job_id = job.id AND cancel.claim_number = job.claim_number
