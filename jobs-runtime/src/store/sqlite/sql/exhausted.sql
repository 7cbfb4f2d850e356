-- Ends the ready jobs of these heads whose claim number can't grow: under the same number a stale
-- worker could pass for the next one. Each has one event more.
-- ?1 array of [queue, route], ?2 now in microseconds, ?3 error class, ?4 error text.
UPDATE jobs_job
SET state = 'dead', finished_at_us = ?2, error_class = ?3, error_text = ?4,
    events = max(0, min(events, 9223372036854775806)) + 1
WHERE id IN (
    SELECT job.id FROM json_each(?1) AS head
    CROSS JOIN jobs_job AS job
        ON job.queue = head.value ->> 0 AND job.route = head.value ->> 1
        AND job.state = 'ready' AND job.claim_number = 9223372036854775807
    WHERE head.value ->> 0 NOT IN (SELECT queue FROM jobs_pause)
)
RETURNING id, claim_number, events
