-- Whether a worker may claim: it is known, was neither closed nor taken back, and does not leave; and
-- whether these queues have ready jobs whose claim number can't grow.
-- $1 worker, $2 array of queues.
SELECT
    EXISTS (
        SELECT FROM {schema}.worker WHERE id = $1 AND ended_at_us IS NULL AND NOT is_leaving
    ) AS is_open,
    EXISTS (
        SELECT FROM {schema}.job AS spent
        WHERE spent.queue = ANY ($2::text[]) AND spent.state = 'ready'
            AND spent.claim_number = 9223372036854775807
    ) AS has_exhausted
