-- Lets a queue be claimed from again.
-- ?1 queue.
DELETE FROM jobs_pause WHERE queue = ?1
