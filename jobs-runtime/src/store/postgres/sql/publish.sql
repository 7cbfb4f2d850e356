-- Notes what a build says about itself, and that it was seen now.
-- $1 build, $2 fingerprint of the manifest, $3 manifest.
INSERT INTO {schema}.build (build, fingerprint, manifest, seen_at_us)
VALUES ($1, $2::bigint, $3, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
ON CONFLICT (build, fingerprint) DO UPDATE SET seen_at_us = excluded.seen_at_us
