-- All schedules, a row for each declaration of a person or an open worker; one without any where there
-- is none. And the server's time, also where there is no schedule.
SELECT
    clock.now_us, schedule.name, schedule.text, schedule.next_at_us, schedule.last_at_us,
    declared.worker_id, declared.since_us, declared.text AS declared_text
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us) AS clock
LEFT JOIN {schema}.schedule AS schedule ON true
LEFT JOIN {schema}.schedule_declaration AS declared
    ON declared.schedule = schedule.name
    AND (declared.worker_id = 0 OR EXISTS (
        SELECT 1 FROM {schema}.worker AS worker
        WHERE worker.id = declared.worker_id AND worker.ended_at_us IS NULL
    ))
ORDER BY schedule.name, declared.worker_id
