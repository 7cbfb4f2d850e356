//! The store for fleets: PostgreSQL.
