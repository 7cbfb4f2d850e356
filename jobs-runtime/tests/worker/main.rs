//! The worker through the public interface, over every embedded store.

mod support;

mod endings;
mod leases;
mod refusals;
mod stops;
mod waits;
