-- Ends waiting jobs as dead; each has one event more.
-- $1 array of job ids, whose rows this transaction has locked; $2 error class, $3 error text.
UPDATE {schema}.job
SET state = 'dead', error_class = $2, error_text = $3,
    events = greatest(0, least(events, 9223372036854775806)) + 1,
    finished_at_us = (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE id = ANY ($1::bigint[]) AND state IN ('scheduled', 'ready')
RETURNING id, claim_number, events
