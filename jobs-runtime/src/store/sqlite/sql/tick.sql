-- Writes the ticks of a schedule with their jobs. The key keeps a tick from coming twice.
-- ?1 schedule, ?2 array of [at_us, job id].
INSERT INTO jobs_schedule_tick (schedule, at_us, job_id)
SELECT ?1, value ->> 0, value ->> 1 FROM json_each(?2)
