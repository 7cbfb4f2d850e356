-- Notes the latest tick of a schedule.
-- $1 name, $2 its latest tick in microseconds.
UPDATE {schema}.schedule SET last_at_us = $2::bigint WHERE name = $1::text
