-- Locks finished jobs that are older than their retention, oldest first. Locked rows are stepped over.
-- $1 limit; in microseconds: $2 succeeded, $3 cancelled, $4 dead.
SELECT next.id
FROM (VALUES ('succeeded', $2::bigint), ('cancelled', $3::bigint), ('dead', $4::bigint))
    AS kept (state, span_us)
CROSS JOIN LATERAL (
    SELECT job.id, job.finished_at_us FROM {schema}.job AS job
    WHERE job.state = kept.state AND job.finished_at_us IS NOT NULL
        AND job.finished_at_us < (
            SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        ) - kept.span_us
    ORDER BY job.state, job.finished_at_us, job.id
    LIMIT $1::bigint
    FOR UPDATE SKIP LOCKED
) AS next
ORDER BY next.finished_at_us, next.id
LIMIT $1::bigint
