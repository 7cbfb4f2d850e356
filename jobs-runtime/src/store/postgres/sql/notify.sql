-- Wakes who listens, while the server's queue of notifications is under half full: when it is full,
-- every commit that notifies fails.
-- $1 channel.
SELECT pg_notify($1, '') WHERE pg_notification_queue_usage() < 0.5
