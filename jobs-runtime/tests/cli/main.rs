//! The command line as a person uses it: what is typed, what is answered, and the exit status.

#[path = "../postgres_support/mod.rs"]
mod postgres_support;
mod session;

mod hostile;
mod looks;
mod rollouts;
mod usage;
