-- Ends waiting jobs as cancelled.
-- ?1 array of job ids, ?2 now in microseconds.
UPDATE jobs_job SET state = 'cancelled', finished_at_us = ?2
WHERE id IN (SELECT value FROM json_each(?1)) AND state IN ('scheduled', 'ready')
