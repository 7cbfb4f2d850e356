//! The worker through the public interface, over every store.

mod support;

mod bulk;
mod drops;
mod endings;
mod enqueues;
mod finishes;
mod leases;
mod middleware;
mod payloads;
mod queues;
mod refusals;
mod rows;
mod schedules;
mod shapes;
mod stops;
mod texts;
mod waits;
