-- Deletes requests about runs that have ended. By where they stand and not by job, so that one that is
-- made anew meanwhile stays.
-- $1 limit.
DELETE FROM {schema}.cancel_request
WHERE ctid = ANY (ARRAY (
    SELECT ended.ctid FROM {schema}.cancel_request AS ended
    WHERE NOT EXISTS (
        SELECT FROM {schema}.job
        WHERE job.id = ended.job_id AND job.claim_number = ended.claim_number
            AND job.state = 'running'
    )
    LIMIT $1::bigint
))
