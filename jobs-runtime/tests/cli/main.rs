//! The command line as a person uses it: what is typed, what is answered, and the exit status.

#[path = "../postgres_support/mod.rs"]
mod postgres_support;
mod session;

mod doctor;
mod hostile;
mod looks;
mod redrives;
mod rollouts;
mod schedules;
mod terminal;
mod usage;
mod watching;
