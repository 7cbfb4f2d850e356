-- Pauses a queue; the first reason stays.
-- ?1 queue, ?2 by whom, ?3 why, ?4 now in microseconds.
INSERT INTO jobs_pause (queue, paused_by, reason, paused_at_us) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (queue) DO NOTHING
