-- Takes the first ready jobs of one head in order of place, under a worker's open lease: what
-- claim.sql does, for the most frequent case.
-- $1 worker, $2 queue, $3 route, $4 place, $5 id to start at, $6 limit.
WITH holder AS MATERIALIZED (
    SELECT FROM {schema}.worker
    WHERE id = $1 AND ended_at_us IS NULL AND NOT is_leaving
        AND NOT EXISTS (SELECT FROM {schema}.pause WHERE pause.queue = $2::text)
    FOR KEY SHARE OF worker
),
taken AS MATERIALIZED (
    SELECT next.at
    FROM holder
    CROSS JOIN LATERAL (
        SELECT job.ctid AS at FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = $2::text AND job.route = $3::text
            AND (job.place, job.id) >= ($4::bigint, $5::bigint)
            AND job.claim_number < 9223372036854775807
        ORDER BY job.queue, job.route, job.place, job.id
        LIMIT $6::bigint
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS next
),
spent AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM {schema}.job AS job
        WHERE job.queue = $2::text AND job.state = 'ready'
            AND job.claim_number = 9223372036854775807
    ) AS is_left
)
UPDATE {schema}.job
SET state = 'running', claim_number = claim_number + 1, worker_id = $1,
    claimed_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE ctid = ANY (ARRAY (SELECT at FROM taken))
RETURNING
    id, claim_number, queue, place, kind, version, min_reader, payload, headers, enqueued_at_us,
    due_at_us,
    -- One column for what a fresh job has not, and for what is left behind that can't be claimed: each
    -- column of a row costs both sides.
    CASE
        WHEN (failures | interruptions | crashes | refusals | snoozes) = 0
            AND max_failures = 20 AND max_interruptions IS NULL AND refused_reason IS NULL
            AND expires_at_us IS NULL AND key_number IS NULL AND checkpoints = 0
            AND NOT (SELECT is_left FROM spent)
        THEN NULL
        ELSE json_build_array(
            failures, interruptions, crashes, refusals, snoozes, max_failures, max_interruptions,
            refused_reason, refused_build, coalesce(expires_at_us <= claimed_at_us, false),
            coalesce(key_number, 0), checkpoints > 0, (SELECT is_left FROM spent)
        )
    END AS past
