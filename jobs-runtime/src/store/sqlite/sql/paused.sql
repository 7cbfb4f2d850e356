-- The paused queues, in order.
SELECT queue, paused_by, reason, paused_at_us FROM jobs_pause ORDER BY queue
