-- Opens the lease of a new worker.
-- $1 name, $2 build, $3 manifest, $4 lease in microseconds, $5 phase.
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
)
INSERT INTO {schema}.worker (name, build, manifest, lease_us, phase, started_at_us, expires_at_us)
SELECT $1, $2, $3, $4::bigint, $5, now_us, now_us + $4::bigint FROM clock
RETURNING id
