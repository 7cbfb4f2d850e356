//! Jobs that survive deploys: client, workers and stores.

#[doc(hidden)]
pub use jobs_core::__private;
pub use jobs_core::*;
