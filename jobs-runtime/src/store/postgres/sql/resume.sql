-- Lets a queue be claimed from again.
-- $1 queue.
DELETE FROM {schema}.pause WHERE queue = $1
