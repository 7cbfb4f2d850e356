-- Deletes finished jobs with all that is kept of them, and answers which.
-- $1 array of job ids, whose rows this transaction has locked.
WITH deleted AS (
    DELETE FROM {schema}.job
    WHERE id = ANY ($1::bigint[]) AND state IN ('succeeded', 'cancelled', 'dead')
    RETURNING id, events, checkpoints
),
events AS (
    DELETE FROM {schema}.event
    WHERE job_id = ANY (ARRAY (SELECT id FROM deleted WHERE events > 0))
),
checkpoints AS (
    DELETE FROM {schema}.checkpoint
    WHERE job_id = ANY (ARRAY (SELECT id FROM deleted WHERE checkpoints > 0))
)
SELECT id FROM deleted
