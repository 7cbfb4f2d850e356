//! The worker through the public interface, over every store.

mod support;

mod bulk;
mod checkpoints;
mod cursors;
mod drops;
mod endings;
mod enqueues;
mod finishes;
mod interruptions;
mod ladders;
mod leases;
mod middleware;
mod notes;
mod payloads;
mod queues;
mod refusals;
mod rollouts;
mod rows;
mod schedules;
mod shapes;
mod stops;
mod suspects;
mod texts;
mod undos;
mod versions;
mod waits;
