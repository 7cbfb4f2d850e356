-- A number that changes when another connection has committed.
PRAGMA data_version
