-- How full the server's queue of notifications is, in percent, from 1 on, and who has been idle inside
-- a transaction for the longest: a session that listens there keeps the queue from being trimmed.
SELECT
    (fullness * 100)::integer AS percent,
    (
        SELECT
            'the session ' || pid || ' of ' || coalesce(usename, 'nobody')
                || CASE WHEN application_name = '' THEN '' ELSE ' (' || application_name || ')' END
        FROM pg_stat_activity
        WHERE state LIKE 'idle in transaction%' AND datname = current_database()
        ORDER BY xact_start
        LIMIT 1
    ) AS who
FROM (SELECT pg_notification_queue_usage() AS fullness) AS queue
WHERE fullness >= 0.01
