-- Takes the first ready jobs of several heads in order of place, under a worker's open lease.
-- The worker's row is held until the claim commits, so that no sweep overlooks what it takes.
-- Locked rows are stepped over. Each head gets its share of the limit by what was ready when the claim
-- began, so that no more rows are locked than taken.
-- A job whose claim number can't grow is left for exhausted.sql.
-- $1 worker; arrays: $2 queue, $3 route, $4 place, $5 id to start at, $6 limit; $7 limit of all.
WITH holder AS MATERIALIZED (
    SELECT FROM {schema}.worker WHERE id = $1 AND ended_at_us IS NULL AND NOT is_leaving
    FOR KEY SHARE
),
head AS MATERIALIZED (
    SELECT wanted.*
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
        AS wanted (queue, route, place, id, room)
    WHERE NOT EXISTS (SELECT FROM {schema}.pause WHERE pause.queue = wanted.queue)
),
share AS MATERIALIZED (
    SELECT first.queue, first.route, first.place, first.id, count(*) AS room
    FROM (
        SELECT head.*
        FROM head
        CROSS JOIN LATERAL (
            SELECT job.place AS next_place, job.id AS next_id FROM {schema}.job AS job
            WHERE job.state = 'ready' AND job.queue = head.queue AND job.route = head.route
                AND (job.place, job.id) >= (head.place, head.id)
                AND job.claim_number < 9223372036854775807
            ORDER BY job.queue, job.route, job.place, job.id
            LIMIT least(head.room, $7::bigint)
        ) AS next
        ORDER BY next.next_place, next.next_id
        LIMIT $7::bigint
    ) AS first
    GROUP BY first.queue, first.route, first.place, first.id
),
taken AS MATERIALIZED (
    SELECT next.at
    FROM holder
    CROSS JOIN share
    CROSS JOIN LATERAL (
        SELECT job.ctid AS at FROM {schema}.job AS job
        WHERE job.state = 'ready' AND job.queue = share.queue AND job.route = share.route
            AND (job.place, job.id) >= (share.place, share.id)
            AND job.claim_number < 9223372036854775807
        ORDER BY job.queue, job.route, job.place, job.id
        LIMIT share.room
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS next
),
spent AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM {schema}.job AS job
        WHERE job.queue = ANY ($2::text[]) AND job.state = 'ready'
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
