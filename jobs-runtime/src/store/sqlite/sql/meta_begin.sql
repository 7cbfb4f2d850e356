-- Gives a new store its identity. Runs once, in the transaction of the first migration.
-- ?1 store id, ?2 schema version, ?3 oldest build that may use it, ?4 now in microseconds.
INSERT INTO jobs_meta (one, store_id, schema_version, min_reader, created_at_us)
VALUES (1, ?1, ?2, ?3, ?4)
