-- Deletes jobs that ended before their state's instant, oldest first. Answers which ones.
-- ?1 succeeded before, ?2 cancelled before, ?3 dead before, in microseconds; ?4 limit.
DELETE FROM jobs_job
WHERE id IN (
    SELECT id FROM (
        SELECT * FROM (
            SELECT finished_at_us, id FROM jobs_job
            WHERE state = 'succeeded' AND finished_at_us < ?1
            ORDER BY finished_at_us, id LIMIT ?4 + 0
        )
        UNION ALL
        SELECT * FROM (
            SELECT finished_at_us, id FROM jobs_job
            WHERE state = 'cancelled' AND finished_at_us < ?2
            ORDER BY finished_at_us, id LIMIT ?4 + 0
        )
        UNION ALL
        SELECT * FROM (
            SELECT finished_at_us, id FROM jobs_job
            WHERE state = 'dead' AND finished_at_us < ?3
            ORDER BY finished_at_us, id LIMIT ?4 + 0
        )
    )
    ORDER BY finished_at_us, id
    LIMIT ?4 + 0
)
RETURNING id
