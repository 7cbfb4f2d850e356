-- The scheduled and ready jobs by queue, kind, version and oldest reader: how many, how many of them
-- were given back unread, and since when the oldest waits.
SELECT
    queue, kind, version, min_reader, count(*) AS jobs, count(refused_reason) AS refused,
    min(enqueued_at_us) AS oldest_at_us
FROM jobs_job
WHERE state IN ('scheduled', 'ready')
GROUP BY queue, kind, version, min_reader
