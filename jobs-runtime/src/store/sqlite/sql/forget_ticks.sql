-- Forgets all but the latest ticks of a schedule.
-- ?1 schedule, ?2 how many to keep.
DELETE FROM jobs_schedule_tick WHERE schedule = ?1 AND at_us <= (
    SELECT at_us FROM jobs_schedule_tick WHERE schedule = ?1 ORDER BY at_us DESC LIMIT 1 OFFSET ?2 + 0
)
