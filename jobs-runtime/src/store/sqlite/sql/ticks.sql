-- The latest ticks of a schedule, newest first.
-- ?1 schedule.
SELECT at_us, job_id FROM jobs_schedule_tick WHERE schedule = ?1 ORDER BY at_us DESC
