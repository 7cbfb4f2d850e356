-- What a worker or a person declares of a schedule, in the place of what it declared before. A text
-- keeps the age of its first declaration.
-- ?1 schedule, ?2 worker or 0 for a person, ?3 text, ?4 now in microseconds.
INSERT INTO jobs_schedule_declaration (schedule, worker_id, since_us, text)
VALUES (
    ?1, ?2,
    coalesce(
        (SELECT min(since_us) FROM jobs_schedule_declaration WHERE schedule = ?1 AND text = ?3), ?4
    ),
    ?3
)
ON CONFLICT (schedule, worker_id) DO UPDATE SET since_us = excluded.since_us, text = excluded.text
