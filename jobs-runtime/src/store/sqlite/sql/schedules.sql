-- All schedules, a row for each declaration of a person or an open worker; one without any where there
-- is none.
SELECT
    schedule.name, schedule.text, schedule.next_at_us, schedule.last_at_us, declared.worker_id,
    declared.since_us, declared.text AS declared_text
FROM jobs_schedule AS schedule
LEFT JOIN jobs_schedule_declaration AS declared
    ON declared.schedule = schedule.name
    AND (declared.worker_id = 0 OR (
        SELECT worker.id FROM jobs_worker AS worker
        WHERE worker.id = declared.worker_id AND worker.ended_at_us IS NULL
    ) IS NOT NULL)
ORDER BY schedule.name, declared.worker_id
