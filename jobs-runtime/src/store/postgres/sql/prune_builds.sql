-- Forgets what builds published that were last seen long ago, oldest first.
-- $1 how long ago, in microseconds; $2 limit.
DELETE FROM {schema}.build
WHERE ctid = ANY (ARRAY (
    SELECT old.ctid FROM {schema}.build AS old
    WHERE old.seen_at_us
        < (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) - $1::bigint
    ORDER BY old.seen_at_us, old.build COLLATE "C", old.manifest COLLATE "C"
    LIMIT $2::bigint
))
