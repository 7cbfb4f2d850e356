-- Writes decided settlements where their fences hold. Taking back advances the claim number too.
-- ?1 array of [[job, claim number, next claim number], state, due_at_us or null, finished_at_us or
--    null, [failures, interruptions, crashes, refusals, snoozes], [error class, text] or null,
--    [refused reason, build] or null, events, [progress or null, result or null] or null].
UPDATE jobs_job
SET
    claim_number = s.next_claim_number,
    state = s.state,
    worker_id = CASE WHEN s.state = 'succeeded' THEN jobs_job.worker_id END,
    due_at_us = coalesce(s.due_at_us, jobs_job.due_at_us),
    finished_at_us = s.finished_at_us,
    failures = s.failures,
    interruptions = s.interruptions,
    crashes = s.crashes,
    refusals = s.refusals,
    snoozes = s.snoozes,
    error_class = CASE WHEN s.is_failure THEN s.error_class ELSE jobs_job.error_class END,
    error_text = CASE WHEN s.is_failure THEN s.error_text ELSE jobs_job.error_text END,
    refused_reason = s.refused_reason,
    refused_build = s.refused_build,
    events = s.events,
    progress = coalesce(s.progress, jobs_job.progress),
    result = coalesce(s.result, jobs_job.result)
FROM (
    SELECT
        value ->> '$[0][0]' AS id,
        value ->> '$[0][1]' AS claim_number,
        value ->> '$[0][2]' AS next_claim_number,
        value ->> '$[1]' AS state,
        value ->> '$[2]' AS due_at_us,
        value ->> '$[3]' AS finished_at_us,
        value ->> '$[4][0]' AS failures,
        value ->> '$[4][1]' AS interruptions,
        value ->> '$[4][2]' AS crashes,
        value ->> '$[4][3]' AS refusals,
        value ->> '$[4][4]' AS snoozes,
        value ->> '$[5]' IS NOT NULL AS is_failure,
        value ->> '$[5][0]' AS error_class,
        value ->> '$[5][1]' AS error_text,
        value ->> '$[6][0]' AS refused_reason,
        value ->> '$[6][1]' AS refused_build,
        value ->> '$[7]' AS events,
        value ->> '$[8][0]' AS progress,
        value ->> '$[8][1]' AS result
    FROM json_each(?1)
) AS s
WHERE jobs_job.id = s.id AND jobs_job.claim_number = s.claim_number AND jobs_job.state = 'running'
