-- Forgets what builds published that were last seen long ago, oldest first.
-- ?1 seen before, in microseconds; ?2 limit.
DELETE FROM jobs_build
WHERE (build, fingerprint) IN (
    SELECT old.build, old.fingerprint FROM jobs_build AS old
    WHERE old.seen_at_us < ?1
    ORDER BY old.seen_at_us, old.build, old.manifest
    LIMIT ?2 + 0
)
