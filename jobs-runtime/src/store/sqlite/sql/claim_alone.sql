-- Takes the first ready jobs of one head in order of place, under a worker's open lease, and answers them
-- one a row: what claim_head.sql and claim_take.sql do together, in one statement that needs no transaction
-- around it. For a few jobs: each row costs the driver as much as the job itself.
-- ?1 worker, ?2 now in microseconds, ?3 queue, ?4 route, ?5 place to start at, ?6 id to start at, ?7 limit.
UPDATE jobs_job
SET state = 'running', claim_number = claim_number + 1, worker_id = ?1, claimed_at_us = ?2
WHERE id IN (
    SELECT id FROM jobs_routed
    WHERE state = 'ready' AND queue = ?3 AND route = ?4
        AND place >= ?5 AND (place > ?5 OR id >= ?6)
        -- Scalars are asked once; IN and EXISTS would be for each row.
        AND (SELECT paused.queue FROM jobs_pause AS paused WHERE paused.queue = ?3) IS NULL
        AND (SELECT worker.id FROM jobs_worker AS worker
            WHERE worker.id = ?1
                AND worker.ended_at_us IS NULL AND worker.is_leaving = 0) IS NOT NULL
    ORDER BY place, id
    LIMIT ?7 + 0
) AND claim_number < 9223372036854775807
RETURNING
    checkpoints > 0 AS is_resumed,
    json_array(
        id, claim_number, queue, priority, kind, version, min_reader, payload, headers,
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
    ) AS job
