-- Makes claims from a queue that has a limit take turns, until the transaction ends.
-- $1 queue.
SELECT count(pg_advisory_xact_lock(hashtextextended($1::text, 7242)))
