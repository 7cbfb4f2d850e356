-- Finished jobs that ended before their state's instant, oldest first.
-- ?1 limit; ?2 succeeded before, ?3 cancelled before, ?4 dead before, in microseconds.
SELECT id FROM (
    SELECT * FROM (
        SELECT finished_at_us, id FROM jobs_job
        WHERE state = 'succeeded' AND finished_at_us < ?2
        ORDER BY finished_at_us, id LIMIT ?1 + 0
    )
    UNION ALL
    SELECT * FROM (
        SELECT finished_at_us, id FROM jobs_job
        WHERE state = 'cancelled' AND finished_at_us < ?3
        ORDER BY finished_at_us, id LIMIT ?1 + 0
    )
    UNION ALL
    SELECT * FROM (
        SELECT finished_at_us, id FROM jobs_job
        WHERE state = 'dead' AND finished_at_us < ?4
        ORDER BY finished_at_us, id LIMIT ?1 + 0
    )
)
ORDER BY finished_at_us, id
LIMIT ?1 + 0
