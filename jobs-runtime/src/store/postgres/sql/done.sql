-- Writes a run's success within its worker's transaction, where the fence holds, and answers whether it does;
-- the row stays locked until that ends.
-- The state is compared in a way that hides it from the planner: see settle_done.sql.
-- $1 job, $2 claim number, $3 progress or null, $4 result or null.
UPDATE {schema}.job
SET state = 'succeeded', refused_reason = NULL, refused_build = NULL,
    finished_at_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    progress = coalesce($3::text, progress), result = coalesce($4::text, result)
WHERE id = $1 AND claim_number = $2 AND state || '' = 'running'
RETURNING id
