-- The waiting jobs of these routes whose deadline has passed. Walks the waiting jobs: it is asked
-- seldom, and only where a worker has a deadline.
-- ?1 array of routes, ?2 has waited since before, in microseconds, ?3 limit.
SELECT job.id, job.claim_number, job.events
FROM jobs_routed AS routed
CROSS JOIN jobs_job AS job ON job.id = routed.id
WHERE (
        routed.state = 'ready'
        OR (routed.state = 'scheduled' AND routed.refused_reason IS NOT NULL)
    )
    AND routed.route IN (SELECT value FROM json_each(?1))
    AND CASE WHEN job.refused_reason IS NULL THEN job.due_at_us ELSE job.enqueued_at_us END <= ?2
ORDER BY job.id
LIMIT ?3 + 0
