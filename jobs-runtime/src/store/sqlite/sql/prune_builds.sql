-- Forgets what builds published that were last seen long ago.
-- ?1 seen before, in microseconds.
DELETE FROM jobs_build WHERE seen_at_us < ?1
