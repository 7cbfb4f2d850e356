-- Notes what a build says about itself, and that it was seen now.
-- ?1 build, ?2 fingerprint of the manifest, ?3 manifest, ?4 now in microseconds.
INSERT INTO jobs_build (build, fingerprint, manifest, seen_at_us) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (build, fingerprint) DO UPDATE SET seen_at_us = excluded.seen_at_us
