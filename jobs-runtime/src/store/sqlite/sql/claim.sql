-- Takes the first ready jobs of several heads in order of place, under a worker's open lease: a
-- merge, one step in the index for each head and each job taken.
-- A job whose claim number can't grow is left for exhausted.sql.
-- ?1 worker, ?2 now in microseconds, ?3 array of [queue, route, after place, after id, limit],
-- ?4 limit of all.
WITH RECURSIVE
head (queue, route, place, id, room) AS (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
    FROM json_each(?3)
    WHERE value ->> 0 NOT IN (SELECT queue FROM jobs_pause)
        AND value ->> 4 > 0
        AND (SELECT id FROM jobs_worker WHERE id = ?1
            AND ended_at_us IS NULL AND is_leaving = 0) IS NOT NULL
),
taken (queue, route, place, id, room) AS (
    SELECT head.queue, head.route, job.place, job.id, head.room
    FROM head
    CROSS JOIN jobs_routed AS job ON job.id = (
        SELECT next.id FROM jobs_routed AS next
        WHERE next.state = 'ready' AND next.queue = head.queue AND next.route = head.route
            AND next.place >= head.place AND (next.place > head.place OR next.id > head.id)
        ORDER BY next.place, next.id LIMIT 1
    )
    UNION ALL
    SELECT taken.queue, taken.route, job.place, job.id, taken.room - 1
    FROM taken
    CROSS JOIN jobs_routed AS job ON job.id = (
        SELECT next.id FROM jobs_routed AS next
        WHERE next.state = 'ready' AND next.queue = taken.queue AND next.route = taken.route
            AND next.place >= taken.place AND (next.place > taken.place OR next.id > taken.id)
        ORDER BY next.place, next.id LIMIT 1
    )
    WHERE taken.room > 1
    ORDER BY 3, 4
    LIMIT ?4 + 0
)
UPDATE jobs_job
SET state = 'running', claim_number = claim_number + 1, worker_id = ?1, claimed_at_us = ?2
WHERE id IN (SELECT id FROM taken) AND claim_number < 9223372036854775807
RETURNING
    id, claim_number, queue, priority, kind, version, min_reader, payload, headers, enqueued_at_us,
    due_at_us,
    -- One column for what a fresh job has not: each column of a row costs the driver a copy.
    CASE
        WHEN (failures | interruptions | crashes | refusals | snoozes | checkpoints) = 0
            AND max_failures = 20 AND max_interruptions IS NULL AND refused_reason IS NULL
            AND expires_at_us IS NULL AND key_number IS NULL
        THEN NULL
        ELSE json_array(
            json_array(failures, interruptions, crashes, refusals, snoozes),
            json_array(max_failures, max_interruptions),
            json_array(refused_reason, refused_build),
            checkpoints,
            json_array(coalesce(expires_at_us <= claimed_at_us, 0), coalesce(key_number, 0))
        )
    END AS past
