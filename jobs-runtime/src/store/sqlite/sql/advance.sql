-- Moves a schedule on where it still is as the caller saw it; answers its latest tick then.
-- ?1 name, ?2 text seen or null, ?3 next_at_us seen or null, ?4 text or null, ?5 next_at_us or null.
UPDATE jobs_schedule SET text = ?4, next_at_us = ?5
WHERE name = ?1 AND text IS ?2 AND next_at_us IS ?3
RETURNING max(
    coalesce(last_at_us, -9223372036854775808),
    coalesce(
        (SELECT max(at_us) FROM jobs_schedule_tick WHERE schedule = ?1), -9223372036854775808
    )
) AS last_at_us
