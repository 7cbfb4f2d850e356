-- Forgets what builds published that were last seen long ago.
-- $1 how long ago, in microseconds.
DELETE FROM {schema}.build
WHERE seen_at_us < (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) - $1::bigint
