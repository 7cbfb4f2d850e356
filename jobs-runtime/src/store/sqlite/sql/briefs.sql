-- What the jobs that match are, without what they carry, in order of id.
-- ?1 state, ?2 queue, ?3 kind, ?4 error class, ?5 build that enqueued it, ?6 build that wrote its latest
-- event, ?7 enqueued from, ?8 and before, ?9 ended from, ?10 and before, ?11 behind this id, each or null;
-- ?12 limit.
SELECT job.id, job.state, job.queue, job.kind, job.error_class, job.finished_at_us
FROM jobs_job AS job
WHERE job.id > coalesce(?11, -9223372036854775808)
    AND (?1 IS NULL OR job.state = ?1)
    AND (?2 IS NULL OR job.queue = ?2)
    AND (?3 IS NULL OR job.kind = ?3)
    AND (?4 IS NULL OR job.error_class = ?4)
    AND (?5 IS NULL OR job.build = ?5)
    AND (?7 IS NULL OR job.enqueued_at_us >= ?7)
    AND (?8 IS NULL OR job.enqueued_at_us < ?8)
    AND (?9 IS NULL OR job.finished_at_us >= ?9)
    AND (?10 IS NULL OR job.finished_at_us < ?10)
    AND (?6 IS NULL OR job.events > 0 AND EXISTS (
        SELECT 1 FROM jobs_event AS event
        WHERE event.job_id = job.id AND event.slot = job.events % 100
            AND event.number = job.events AND event.build = ?6
    ))
ORDER BY job.id
LIMIT ?12 + 0
