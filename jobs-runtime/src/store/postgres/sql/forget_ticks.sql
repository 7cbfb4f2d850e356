-- Forgets all but the latest ticks of a schedule.
-- $1 schedule, $2 how many to keep.
DELETE FROM {schema}.schedule_tick AS old WHERE old.schedule = $1::text AND old.at_us <= (
    SELECT tick.at_us FROM {schema}.schedule_tick AS tick
    WHERE tick.schedule = $1::text ORDER BY tick.at_us DESC LIMIT 1 OFFSET $2::bigint
)
