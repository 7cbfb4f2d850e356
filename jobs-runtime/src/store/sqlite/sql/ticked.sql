-- Notes the latest tick of a schedule.
-- ?1 name, ?2 its latest tick in microseconds.
UPDATE jobs_schedule SET last_at_us = ?2 WHERE name = ?1
