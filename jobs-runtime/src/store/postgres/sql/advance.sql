-- Moves a schedule on where it still is as the caller saw it; answers its latest tick then.
-- $1 name, $2 text seen or null, $3 next_at_us seen or null, $4 text or null, $5 next_at_us or null.
UPDATE {schema}.schedule AS schedule SET text = $4::text, next_at_us = $5::bigint
WHERE schedule.name = $1::text AND schedule.text IS NOT DISTINCT FROM $2::text
    AND schedule.next_at_us IS NOT DISTINCT FROM $3::bigint
RETURNING coalesce(
    greatest(
        schedule.last_at_us,
        (SELECT max(tick.at_us) FROM {schema}.schedule_tick AS tick WHERE tick.schedule = $1::text)
    ),
    -9223372036854775808
) AS last_at_us
