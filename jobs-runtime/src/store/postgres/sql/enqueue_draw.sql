-- Draws the numbers of jobs that several statements store in another order, and the instant of that.
-- $1 how many.
SELECT
    nextval({job_ids}) AS id,
    (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now_us
FROM generate_series(1, $1::bigint)
