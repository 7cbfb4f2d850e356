-- Writes lines of history over the hundredth before each.
-- Arrays: $1 job, $2 number, $3 claim number, $4 kind, $5 class, $6 text; $7 worker or null,
-- $8 build or null.
INSERT INTO {schema}.event (
    job_id, slot, number, at_us, claim_number, kind, class, text, worker_id, build
)
SELECT
    line.job_id, line.number % 100, line.number,
    (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    line.claim_number, line.kind, line.class, line.text, $7::bigint, $8
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[])
    AS line (job_id, number, claim_number, kind, class, text)
ON CONFLICT (job_id, slot) DO UPDATE SET
    number = excluded.number, at_us = excluded.at_us, claim_number = excluded.claim_number,
    kind = excluded.kind, class = excluded.class, text = excluded.text,
    worker_id = excluded.worker_id, build = excluded.build
