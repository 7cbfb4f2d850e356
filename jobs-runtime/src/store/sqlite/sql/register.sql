-- Opens the lease of a new worker, whose lock file is held already.
-- ?1 name, ?2 build, ?3 manifest, ?4 lock file, ?5 lease in microseconds, ?6 now in microseconds.
INSERT INTO jobs_worker (name, build, manifest, lock_file, lease_us, started_at_us, renewed_at_us)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
RETURNING id
