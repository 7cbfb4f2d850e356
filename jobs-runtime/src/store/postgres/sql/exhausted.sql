-- Ends the ready jobs of these heads whose claim number can't grow: under the same number a stale
-- worker could pass for the next one.
-- Arrays: $1 queue, $2 route; $3 error class, $4 error text.
WITH ended AS MATERIALIZED (
    SELECT next.at
    FROM unnest($1::text[], $2::text[]) AS head (queue, route)
    CROSS JOIN LATERAL (
        SELECT job.ctid AS at FROM {schema}.job AS job
        WHERE job.queue = head.queue AND job.route = head.route
            AND job.state = 'ready' AND job.claim_number = 9223372036854775807
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS next
    WHERE NOT EXISTS (SELECT FROM {schema}.pause WHERE pause.queue = head.queue)
)
UPDATE {schema}.job
SET state = 'dead', error_class = $3, error_text = $4,
    events = greatest(0, least(events, 9223372036854775806)) + 1,
    finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE ctid = ANY (ARRAY (SELECT at FROM ended))
RETURNING id, claim_number, events
