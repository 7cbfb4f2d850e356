-- Whether a worker may claim: it is known, was neither closed nor taken back, and does not leave.
-- ?1 worker.
SELECT EXISTS (SELECT 1 FROM jobs_worker WHERE id = ?1
    AND ended_at_us IS NULL AND is_leaving = 0) AS is_open
