-- What a worker or a person declares of a schedule, in the place of what it declared before. A text
-- keeps the age of its first declaration.
-- $1 schedule, $2 worker or 0 for a person, $3 text.
INSERT INTO {schema}.schedule_declaration (schedule, worker_id, since_us, text)
VALUES (
    $1::text, $2::bigint,
    coalesce(
        (
            SELECT min(earlier.since_us) FROM {schema}.schedule_declaration AS earlier
            WHERE earlier.schedule = $1::text AND earlier.text = $3::text
        ),
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    ),
    $3::text
)
ON CONFLICT (schedule, worker_id) DO UPDATE SET since_us = excluded.since_us, text = excluded.text
