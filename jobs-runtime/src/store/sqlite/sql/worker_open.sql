-- Whether a worker is known and was neither closed nor taken back.
-- ?1 worker.
SELECT EXISTS (SELECT 1 FROM jobs_worker WHERE id = ?1 AND ended_at_us IS NULL) AS is_open
