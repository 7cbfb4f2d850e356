-- Notes that the schema has moved on, in the transaction of the migration that moved it.
-- ?1 schema version, ?2 oldest build that may use it.
UPDATE jobs_meta SET schema_version = ?1, min_reader = ?2 WHERE one = 1
