-- The queues that are paused.
SELECT queue, paused_by, reason, paused_at_us FROM {schema}.pause ORDER BY queue
