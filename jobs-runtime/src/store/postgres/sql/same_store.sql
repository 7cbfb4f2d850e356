-- Whether this connection reaches the store of that id.
-- $1 store id.
SELECT EXISTS (SELECT FROM {schema}.meta WHERE store_id = $1)
