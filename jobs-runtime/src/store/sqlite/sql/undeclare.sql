-- Takes back what a person declared of a schedule.
-- ?1 schedule.
DELETE FROM jobs_schedule_declaration WHERE schedule = ?1 AND worker_id = 0
