-- Notes that jobs got on: what had gone wrong since the last checkpoint counts no more. A row of which
-- that is known already is not written again.
-- ?1 array of [job, number of the checkpoint, whether failures are kept].
UPDATE jobs_job
SET
    checkpoints = s.number,
    interruptions = 0,
    crashes = 0,
    failures = CASE WHEN s.keeps_failures THEN failures ELSE 0 END
FROM (
    SELECT value ->> 0 AS id, value ->> 1 AS number, value ->> 2 AS keeps_failures
    FROM json_each(?1)
) AS s
WHERE jobs_job.id = s.id AND jobs_job.state = 'running'
    AND (
        checkpoints = 0 OR interruptions <> 0 OR crashes <> 0
        OR (failures <> 0 AND NOT s.keeps_failures)
    )
