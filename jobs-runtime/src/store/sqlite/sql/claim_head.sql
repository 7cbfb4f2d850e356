-- Takes the first ready jobs of one head in order of place, under a worker's open lease: what
-- claim.sql does, for the most frequent case, without the merge.
-- ?1 worker, ?2 now in microseconds, ?3 queue, ?4 route, ?5 after place, ?6 after id, ?7 limit.
UPDATE jobs_job
SET state = 'running', claim_number = claim_number + 1, worker_id = ?1, claimed_at_us = ?2
WHERE id IN (
    SELECT id FROM jobs_routed
    WHERE state = 'ready' AND queue = ?3 AND route = ?4
        AND place >= ?5 AND (place > ?5 OR id > ?6)
        -- Scalars are asked once; IN and EXISTS would be for each row.
        AND (SELECT paused.queue FROM jobs_pause AS paused WHERE paused.queue = ?3) IS NULL
        AND (SELECT worker.id FROM jobs_worker AS worker
            WHERE worker.id = ?1
                AND worker.ended_at_us IS NULL AND worker.is_leaving = 0) IS NOT NULL
    ORDER BY place, id
    LIMIT ?7 + 0
) AND claim_number < 9223372036854775807
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
