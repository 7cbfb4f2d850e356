//! The worker through the public interface, over every store.

mod support;

mod bulk;
mod drops;
mod endings;
mod finishes;
mod leases;
mod middleware;
mod payloads;
mod refusals;
mod rollouts;
mod rows;
mod shapes;
mod stops;
mod texts;
mod waits;
