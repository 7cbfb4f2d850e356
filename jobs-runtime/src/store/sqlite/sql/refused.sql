-- The refused jobs of these routes, oldest first.
-- ?1 limit, ?2 array of routes.
SELECT id FROM jobs_routed
WHERE state = 'scheduled' AND refused_reason IS NOT NULL
    AND route IN (SELECT value FROM json_each(?2))
ORDER BY id
LIMIT ?1 + 0
