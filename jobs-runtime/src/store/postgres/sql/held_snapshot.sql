-- The oldest snapshot that keeps vacuum from this database's dead rows, where it is older than $1
-- microseconds: who holds it, and for how many microseconds. Of the sessions of other roles the
-- server tells only who may read its statistics (pg_read_all_stats).
SELECT who, held_us
FROM (
    SELECT
        'the session ' || pid || ' of ' || coalesce(usename, 'nobody')
            || CASE WHEN application_name = '' THEN '' ELSE ' (' || application_name || ')' END
            || ', ' || coalesce(state, backend_type) AS who,
        (extract(epoch FROM clock_timestamp() - coalesce(xact_start, backend_start)) * 1000000)::bigint
            AS held_us,
        age(coalesce(backend_xmin, backend_xid)) AS held_for
    FROM pg_stat_activity
    WHERE coalesce(backend_xmin, backend_xid) IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT
        'the prepared transaction ' || quote_literal(gid) || ' of ' || owner,
        (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint,
        age(transaction)
    FROM pg_prepared_xacts
    WHERE database = current_database()
) AS holder
WHERE held_us > $1
ORDER BY held_for DESC, held_us DESC
LIMIT 1
