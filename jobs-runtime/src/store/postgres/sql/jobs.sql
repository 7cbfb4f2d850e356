-- All that is kept of jobs, in order of id.
-- $1 state or null, $2 queue or null, $3 kind or null, $4 after this id, $5 limit.
SELECT
    job.id, job.state, job.queue, job.kind, job.version, job.min_reader, job.payload, job.headers,
    job.unique_key, job.priority, job.claim_number, job.worker_id, job.failures, job.interruptions,
    job.crashes, job.refusals, job.snoozes, job.max_failures, job.max_interruptions,
    saved.version AS checkpoint_version, saved.min_reader AS checkpoint_min_reader,
    saved.text AS checkpoint_text, saved.number AS checkpoint_number, job.refused_reason,
    job.refused_build, job.error_class, job.error_text, job.build, job.enqueued_at_us,
    job.due_at_us, job.claimed_at_us, job.finished_at_us, job.progress,
    job.result
FROM (
    SELECT * FROM {schema}.job AS job
    WHERE ($1::text IS NULL OR job.state = $1) AND ($2::text IS NULL OR job.queue = $2)
        AND ($3::text IS NULL OR job.kind = $3) AND job.id > $4::bigint
    ORDER BY job.id
    LIMIT $5::bigint
) AS job
LEFT JOIN {schema}.checkpoint AS saved ON saved.job_id = job.id
ORDER BY job.id
