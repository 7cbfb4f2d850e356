-- Whether there are ready jobs whose claim number can't grow.
SELECT EXISTS (
    SELECT 1 FROM jobs_job WHERE state = 'ready' AND claim_number = 9223372036854775807
) AS has_exhausted
