-- Makes scheduled jobs ready, due now at the latest, and answers which.
-- $1 array of job ids, whose rows this transaction has locked.
UPDATE {schema}.job
SET state = 'ready',
    due_at_us = least(
        due_at_us, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    )
WHERE id = ANY ($1::bigint[]) AND state = 'scheduled'
RETURNING id
