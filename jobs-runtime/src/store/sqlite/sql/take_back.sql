-- Ends a worker's lease for ever, unless it was renewed since it was judged. No row: it was, or it
-- has ended.
-- ?1 worker, ?2 renewals when it was judged, ?3 now in microseconds.
UPDATE jobs_worker SET ended_at_us = ?3, is_taken_back = 1
WHERE id = ?1 AND renewals = ?2 AND ended_at_us IS NULL
