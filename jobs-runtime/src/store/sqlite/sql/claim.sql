-- Reads the first ready jobs of several heads in order of place, under a worker's open lease: a merge,
-- one step in the index for each head and each job. They are taken by claim_take.sql, within the same
-- transaction. A job whose claim number can't grow is left for exhausted.sql.
-- One row for all: each row, and each column of one, costs the driver as much as the job itself.
-- ?1 worker, ?2 now in microseconds, ?3 array of [queue, route, place, id to start at, limit],
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
            AND next.place >= head.place AND (next.place > head.place OR next.id >= head.id)
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
SELECT
    json_group_array(id) AS ids,
    count(*) AS taken,
    coalesce(sum(checkpoints > 0), 0) AS resumed,
    json_group_array(json_array(
        id, claim_number + 1, queue, priority, kind, version, min_reader, payload, headers,
        enqueued_at_us, due_at_us,
        -- What a fresh job has not.
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
                json_array(coalesce(expires_at_us <= ?2, 0), coalesce(key_number, 0))
            )
        END
    )) AS jobs
FROM jobs_job
WHERE id IN (SELECT id FROM taken) AND claim_number < 9223372036854775807
