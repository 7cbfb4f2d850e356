-- Ends waiting jobs as dead, because no live worker could read them until their deadline.
-- ?1 array of job ids, ?2 now in microseconds, ?3 class, ?4 text.
UPDATE jobs_job SET state = 'dead', finished_at_us = ?2, error_class = ?3, error_text = ?4
WHERE id IN (SELECT value FROM json_each(?1)) AND state IN ('scheduled', 'ready')
