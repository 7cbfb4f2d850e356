-- Which store this is, and who may use its schema.
SELECT store_id, schema_version, min_reader FROM {schema}.meta
