-- Makes enqueues of a key that binds beyond the wait take turns, until the transaction ends.
-- Arrays in order: $1 kind, $2 unique key.
SELECT count(pg_advisory_xact_lock(hashtextextended(new.kind || chr(1) || new.unique_key, 7241)))
FROM unnest($1::text[], $2::text[]) AS new (kind, unique_key)
