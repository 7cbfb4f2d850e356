-- The latest ticks of a schedule, newest first.
-- $1 schedule.
SELECT tick.at_us, tick.job_id FROM {schema}.schedule_tick AS tick
WHERE tick.schedule = $1::text ORDER BY tick.at_us DESC
