-- What the jobs that match are, without what they carry, in order of id.
-- $1 state, $2 queue, $3 kind, $4 error class, $5 build that enqueued it, $6 build that wrote its latest
-- event, $7 enqueued from, $8 and before, $9 ended from, $10 and before, each or null; $11 behind this id,
-- $12 limit.
-- Planned for its values: what is null is then no condition, and has no join either. No number is above
-- `events`; told that it is equal, the planner takes matches for rarer than they are.
SELECT
    job.id, job.state, job.queue, job.kind, job.version, job.priority, job.failures, job.interruptions,
    job.crashes, job.refusals, job.snoozes, job.refused_reason, job.refused_build, job.error_class,
    job.build, job.worker_id, job.unique_key, job.enqueued_at_us, job.due_at_us, job.claimed_at_us,
    job.finished_at_us
FROM {schema}.job AS job
LEFT JOIN {schema}.event AS latest
    ON latest.job_id = job.id AND latest.number >= job.events AND latest.build = $6
WHERE job.id > $11::bigint
    AND ($1::text IS NULL OR job.state = $1) AND ($2::text IS NULL OR job.queue = $2)
    AND ($3::text IS NULL OR job.kind = $3) AND ($4::text IS NULL OR job.error_class = $4)
    AND ($5::text IS NULL OR job.build = $5)
    AND ($7::bigint IS NULL OR job.enqueued_at_us >= $7)
    AND ($8::bigint IS NULL OR job.enqueued_at_us < $8)
    AND ($9::bigint IS NULL OR job.finished_at_us >= $9)
    AND ($10::bigint IS NULL OR job.finished_at_us < $10)
    AND (
        ($9::bigint IS NULL AND $10::bigint IS NULL)
        OR job.state IN ('succeeded', 'dead', 'cancelled')
    )
    AND ($6::text IS NULL OR latest.build IS NOT NULL)
ORDER BY job.id
LIMIT $12::bigint
