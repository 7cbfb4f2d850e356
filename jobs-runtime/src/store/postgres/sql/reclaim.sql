-- Notes how many runs each of these workers holds, whose leases this transaction has ended. A
-- statement of its own, so that it sees what was claimed until that end.
-- $1 workers.
UPDATE {schema}.worker
SET reclaimed = (
    SELECT count(*) FROM {schema}.job WHERE job.state = 'running' AND job.worker_id = worker.id
)
WHERE worker.id = ANY ($1::bigint[])
