-- The file of a connection; empty for one in memory.
SELECT file FROM pragma_database_list WHERE name = 'main'
