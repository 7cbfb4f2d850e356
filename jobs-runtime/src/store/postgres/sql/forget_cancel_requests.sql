-- Deletes requests about runs that have ended.
DELETE FROM {schema}.cancel_request AS cancel
WHERE NOT EXISTS (
    SELECT FROM {schema}.job
    WHERE job.id = cancel.job_id AND job.claim_number = cancel.claim_number
        AND job.state = 'running'
)
