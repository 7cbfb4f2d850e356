//! The drift check: has a shape changed while its version has not?
//!
//! The derives of a job and of a past job emit a test that compares the shape with what its version
//! was when it was locked: `jobs.lock/<kind>/<major>.<minor>.json` in the package of the type, to be
//! committed with the code. It holds what the shape writes and what it reads, as schemas, and golden
//! samples. The checkpoint of a job stands beside it, in `checkpoint-<major>.<minor>.json`.
//!
//! 1. A locked version never changes and no file is ever deleted or overwritten. What was never
//!    deployed may be deleted by hand and locked again.
//! 2. `JOBS_LOCK=update cargo test` writes what is missing and has its right version. Where `CI` is
//!    set nothing is ever written.
//! 3. The samples of every version that the build accepts are decoded as stored rows are, upcasts
//!    included, in each run of the tests.
//! 4. `readable_by` is accepted only where it is proven: since that version only fields with a
//!    default were added, in places where its readers ignore what they don't know.
//!
//! A package takes part once it has a folder `jobs.lock` when it is compiled; then every job of it must
//! derive `JsonSchema`. Cargo does not see a folder come: `JOBS_LOCK=update` has a package that was built
//! without one built anew, once; any other build needs a changed source for it.
//!
//! # What it can't see
//! - The same shape with another meaning: cents for dollars. Raise the major.
//! - What a `#[serde(with = "…")]` function does, where the schema says only "a text" and no sample
//!   of this crate's making decodes: implement [`Samples`]. What a locked sample is written as again
//!   may not change.
//! - The shape of a past checkpoint: only its samples are checked.
//! - A job that is declared inside of a function: rustc runs no test there, and says so by its lint
//!   `unnameable_test_items`.
//! - Aliases of an enum's variants: a renamed variant counts as removed.

mod check;
pub mod diff;
mod file;
mod probe;
mod sample;
mod schema;
mod shape;

#[doc(hidden)]
pub use self::check::{Mode, Subject};
#[doc(hidden)]
pub use self::file::Part;
#[doc(hidden)]
pub use self::probe::{Described, Probe, Sampled, Undescribed, Unsampled};
pub use self::schema::{Schemas, canonical};

/// Samples of a shape that this crate can't make up, for the drift check.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Charge { card: String }
/// #[cfg(test)]
/// impl jobs_core::lock::Samples for Charge {
///     fn samples() -> Vec<Self> {
///         vec![Charge { card: "4111-1111".to_owned() }]
///     }
/// }
/// ```
pub trait Samples: Sized {
    /// Some values, each written to the lock of a new version.
    fn samples() -> Vec<Self>;
}
