-- Forgets abandoned runs that have ended.
DELETE FROM {schema}.abandoned
WHERE NOT EXISTS (
    SELECT FROM {schema}.job
    WHERE job.id = abandoned.job_id AND job.claim_number = abandoned.claim_number
        AND job.state = 'running'
)
