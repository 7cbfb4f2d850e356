//! Jobs that survive deploys: client, workers and stores.

pub mod store;

#[doc(hidden)]
pub use jobs_core::__private;
pub use jobs_core::*;
