//! The worker through the public interface, over every store.

mod lines;
mod planted;
mod support;

mod beside;
mod bulk;
mod checkpoints;
mod cursors;
mod drops;
mod endings;
mod enqueues;
mod finishes;
mod holds;
mod interruptions;
mod ladders;
mod leases;
mod looks;
#[cfg(feature = "http")]
mod measures;
mod middleware;
mod notes;
mod payloads;
mod queues;
mod refusals;
mod rollouts;
mod rows;
mod saturated;
mod schedules;
mod shapes;
mod stops;
mod stranded;
mod suspects;
mod texts;
mod troubles;
mod undos;
mod versions;
mod waits;
