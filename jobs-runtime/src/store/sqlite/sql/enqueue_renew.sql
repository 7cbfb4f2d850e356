-- Gives a waiting job what a new one of its kind and key brings.
-- ?1 job, ?2 whether its payload is replaced, ?3 version, ?4 min_reader, ?5 payload, ?6 headers,
-- ?7 build, ?8 whether it is rescheduled, ?9 state, ?10 due_at_us, ?11 priority, ?12 expires_at_us or null.
UPDATE jobs_job
SET version = CASE WHEN ?2 THEN ?3 ELSE version END,
    min_reader = CASE WHEN ?2 THEN ?4 ELSE min_reader END,
    payload = CASE WHEN ?2 THEN ?5 ELSE payload END,
    headers = CASE WHEN ?2 THEN ?6 ELSE headers END,
    build = CASE WHEN ?2 THEN ?7 ELSE build END,
    failures = CASE WHEN ?2 THEN 0 ELSE failures END,
    interruptions = CASE WHEN ?2 THEN 0 ELSE interruptions END,
    crashes = CASE WHEN ?2 THEN 0 ELSE crashes END,
    refusals = CASE WHEN ?2 THEN 0 ELSE refusals END,
    snoozes = CASE WHEN ?2 THEN 0 ELSE snoozes END,
    checkpoints = CASE WHEN ?2 THEN 0 ELSE checkpoints END,
    refused_reason = CASE WHEN ?2 THEN NULL ELSE refused_reason END,
    refused_build = CASE WHEN ?2 THEN NULL ELSE refused_build END,
    progress = CASE WHEN ?2 THEN NULL ELSE progress END,
    state = CASE WHEN ?8 THEN ?9 ELSE state END,
    due_at_us = CASE WHEN ?8 THEN ?10 ELSE due_at_us END,
    priority = CASE WHEN ?8 THEN ?11 ELSE priority END,
    expires_at_us = CASE WHEN ?8 THEN ?12 ELSE expires_at_us END
WHERE id = ?1 AND state IN ('scheduled', 'ready')
