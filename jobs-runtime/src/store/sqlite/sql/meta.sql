-- Which store this is and who may use its schema. No row before the first migration has committed.
SELECT store_id, schema_version, min_reader FROM jobs_meta WHERE one = 1
