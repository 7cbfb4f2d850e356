-- Ends a worker's lease for ever, unless it was renewed since it was judged, and notes how many runs
-- it held. No row: it was, or it has ended.
-- ?1 worker, ?2 renewals when it was judged, ?3 now in microseconds.
UPDATE jobs_worker
SET ended_at_us = ?3, is_taken_back = 1,
    reclaimed = (SELECT count(*) FROM jobs_job WHERE state = 'running' AND worker_id = ?1)
WHERE id = ?1 AND renewals = ?2 AND ended_at_us IS NULL
