//! The worker over PostgreSQL servers that crash, are cut off, answer late or not at all.

mod answers;
mod crashes;
mod crew;
mod cuts;
mod defaults;
mod encryption;
mod holds;
mod mixed;
mod passwords;
mod refusals;
mod snapshots;
mod sql;
mod standbys;
mod wire;
