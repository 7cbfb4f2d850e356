-- Keeps what a worker did in its drain.
-- $1 worker, $2 settled, $3 interrupted, $4 released, $5 abandoned, $6 took in microseconds.
UPDATE {schema}.worker
SET drain_settled = $2::bigint, drain_interrupted = $3::bigint, drain_released = $4::bigint,
    drain_abandoned = $5::bigint, drain_took_us = $6::bigint
WHERE id = $1
