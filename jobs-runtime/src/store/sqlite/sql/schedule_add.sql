-- A schedule that somebody declares for the first time: it ticks once a leader has seen it.
-- ?1 name.
INSERT INTO jobs_schedule (name) VALUES (?1) ON CONFLICT (name) DO NOTHING
