-- What builds have published, most lately seen first.
SELECT build, manifest, seen_at_us FROM {schema}.build ORDER BY seen_at_us DESC, build, manifest
