-- All that is kept of the jobs that match, the newest first.
-- ?1 state, ?2 queue, ?3 kind, ?4 error class, ?5 build that enqueued it, ?6 build that wrote its latest
-- event, ?7 enqueued from, ?8 and before, ?9 ended from, ?10 and before, ?11 before this id, each or null;
-- ?12 limit.
-- Whose history a build is in at all is found once, and where the last of them is: a build that none or
-- few have costs no look at each job.
SELECT
    job.id, job.state, job.queue, job.kind, job.version, job.min_reader, job.payload, job.headers,
    job.unique_key, job.priority, job.claim_number, job.worker_id, job.failures, job.interruptions,
    job.crashes, job.refusals, job.snoozes, job.max_failures, job.max_interruptions,
    job.refused_reason, job.refused_build, job.error_class, job.error_text, job.build,
    job.enqueued_at_us, job.due_at_us, job.claimed_at_us, job.finished_at_us,
    job.unique_while, job.expires_at_us, coalesce(job.key_number, 0) AS key_number,
    job.progress, job.result,
    saved.version AS checkpoint_version, saved.min_reader AS checkpoint_min_reader,
    saved.text AS checkpoint_text, saved.number AS checkpoint_number
FROM jobs_job AS job
LEFT JOIN jobs_checkpoint AS saved ON saved.job_id = job.id
WHERE job.id < min(
        coalesce(?11, 9223372036854775807),
        iif(
            ?6 IS NULL,
            9223372036854775807,
            coalesce(
                (SELECT max(event.job_id) + 1 FROM jobs_event AS event WHERE event.build = ?6),
                -9223372036854775808
            )
        )
    )
    AND (?1 IS NULL OR job.state = ?1)
    AND (?2 IS NULL OR job.queue = ?2)
    AND (?3 IS NULL OR job.kind = ?3)
    AND (?4 IS NULL OR job.error_class = ?4)
    AND (?5 IS NULL OR job.build = ?5)
    AND (?7 IS NULL OR job.enqueued_at_us >= ?7)
    AND (?8 IS NULL OR job.enqueued_at_us < ?8)
    AND (?9 IS NULL OR job.finished_at_us >= ?9)
    AND (?10 IS NULL OR job.finished_at_us < ?10)
    AND (?6 IS NULL OR job.id IN (
        SELECT event.job_id FROM jobs_event AS event WHERE event.build = ?6
    ) AND EXISTS (
        SELECT 1 FROM jobs_event AS event
        WHERE event.job_id = job.id AND event.slot = job.events % 100
            AND event.number = job.events AND event.build = ?6
    ))
ORDER BY job.id DESC
LIMIT ?12 + 0
