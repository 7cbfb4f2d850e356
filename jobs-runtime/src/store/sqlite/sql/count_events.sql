-- Notes how many events jobs have had, outside of a settlement.
-- ?1 array of [job, events].
UPDATE jobs_job SET events = s.events
FROM (SELECT value ->> 0 AS id, value ->> 1 AS events FROM json_each(?1)) AS s
WHERE jobs_job.id = s.id
