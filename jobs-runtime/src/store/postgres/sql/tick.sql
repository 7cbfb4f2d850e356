-- Writes the ticks of a schedule with their jobs. The key keeps a tick from coming twice.
-- $1 schedule; arrays: $2 at_us, $3 job id.
INSERT INTO {schema}.schedule_tick (schedule, at_us, job_id)
SELECT $1::text, tick.at_us, tick.job_id
FROM unnest($2::bigint[], $3::bigint[]) AS tick (at_us, job_id)
