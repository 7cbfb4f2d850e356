//! The derives of the jobs framework: [`Job`](macro@Job), [`PastJob`](macro@PastJob) and
//! [`Checkpoint`](macro@Checkpoint).
//!
//! 1. A kind is written out, never made from the name or the path of a type: moving or renaming a
//!    type leaves what is stored alone.
//! 2. One compile tells every mistake of a type, each on its own token, with what to write instead.
//! 3. A type with mistakes still counts as what it was to be, so that its uses report nothing.
//! 4. An expansion adds no warning to the user's code and no name but that of its drift test, and
//!    takes nothing from what is in scope there.
//!
//! Deliberately absent: serialisation, which is serde's, and registration, which is an explicit list
//! of types in the worker. The three steps are files: `attr` reads, `valid` checks, `expand` writes.
//!
//! `jobs-core` and `jobs-runtime` re-export the derives. Depend on one of them, not on this crate.

mod ast;
mod attr;
mod errors;
mod expand;
mod fallback;
mod fingerprint;
mod krate;
mod nearest;
#[cfg(test)]
mod tests;
mod text;
mod valid;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use ast::Derive;
use errors::Errors;
use valid::Package;

/// Makes a struct or an enum a job: a payload in its newest shape.
///
/// It implements `Versioned`, `Payload` and `Job`; serde's `Serialize` and `Deserialize` are derived
/// beside it. The options stand in one or more `#[job(…)]` on the type.
///
/// | option | value | default |
/// |---|---|---|
/// | `kind` | the stable name: `snake_case` segments joined by dots, each starting with a letter, at most 96 bytes; `jobs` and `jobs.…` are reserved | required |
/// | `version` | `"MAJOR.MINOR.PATCH"`, major at least 1, no pre-release and no build part | required |
/// | `readable_by` | `"MAJOR.MINOR"`: the oldest reader that this shape is vouched for, of its own major and no newer | the version itself: no older reader |
/// | `previous` | the type of an older major of this kind or of an alias, a `PastJob` or a `Job`, from which this one is made by `From` or `TryFrom` | none: older majors are refused |
/// | `aliases("…", …)` | kinds from before a rename, in parentheses, under which rows are still stored. A unique key binds among the rows of one stored kind, and a schedule is named after its kind: while builds of both names enqueue, each has its own | none |
/// | `queue` | 1 to 255 bytes without control characters | `"default"` |
/// | `priority` | -100 to 100, higher first | 0 |
/// | `max_failures` | how many failures make a dead letter, that of the first run included, at least 1 | 20: with the default ladder, about four and a half days |
/// | `timeout` | how long a run may take: a whole number above 0 and a unit, `"500ms"`, `"30s"`, `"5m"`, `"2h"` or `"1d"` of 24 hours, at most 365 days | none: a run takes its time |
/// | `retry` | the waits between failures: `"2s..1h"` doubles from the first up to the second, `"30s"` is the same each time, `"1s, 10s, 5m"` is a list whose last one repeats; each is moved by up to a tenth | `"2s..24h"` |
/// | `expires_in` | how long a job may wait for a run to start, from when it is due; then it is dead, with the class `expired` | none: it waits |
/// | `unique("…", …)` | fields of a struct, in parentheses: of jobs in which they are equal one at a time waits. Their JSON is the unique key, so it has at most 512 bytes | none |
/// | `schedule` | when the job's `Default` is enqueued by the clock: a cron expression and an IANA time zone, `"0 3 * * * Europe/Berlin"`, or an interval, `"every 15m"`; checked where the worker's registry is built | never |
/// | `catch_up` | what is done about ticks that nobody was there for: `"none"`, `"latest"`, or `"all 10"` up to 1000 | `"latest"` |
/// | `on_stop` | what becomes of a run that a drain meets: `"give_back"`, `"finish"`, `"undo"` or `"at_most_once"`; see `OnStop` | `"give_back"` |
/// | `checkpoint` | the type that the handler saves, a `Checkpoint` that is as visible as the job | none: it saves nothing |
/// | `checkpoint_every` | write checkpoints at most this often: a span as of `timeout`. A run that is killed then repeats up to so much; what was not written is when the run ends | none: each is written |
/// | `on_checkpoint` | `"reset_failures"`, or `"keep_failures"`: whether a checkpoint that moved starts the count of failures anew | `"reset_failures"`: who gets on has not failed |
/// | `on_old_checkpoint` | `"refuse"`, or `"restart"`: what follows from a saved checkpoint that is older than all that this build reads | `"refuse"`: the job waits for a build that reads it |
/// | `crate` | the path of `jobs-core` or of a re-export, bare or in quotes; bare, it may begin with the `$crate` of a macro; to be written where Cargo.toml holds two versions | found in Cargo.toml, also where it is renamed: `jobs-core`, else `jobs-runtime` |
///
/// # Drift
/// Where the package has a folder `jobs.lock` and the feature `schema` of `jobs-core` or `jobs-runtime`
/// is on, its tests get one named `jobs_lock_…` for each job, past job and checkpoint of a job. It
/// fails when the shape no longer fits its version; what it sees and what it can't stands in
/// `jobs_core::lock`.
///
/// # Errors
/// A union, a type with parameters (one kind is one stored shape), an option that is missing,
/// unknown, written twice or in the wrong form, a value outside of its range: all of them in one
/// compile. Where `previous` has another kind, no older major, or can't be converted, rustc says so
/// on the type that is named there. The error of a `TryFrom` must implement `Display`, since its text
/// is kept with the dead letter.
///
/// # Examples
/// ```
/// use jobs_core::{Job, PastJob, Versioned};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize, PastJob)]
/// #[job(kind = "billing.charge", version = "1.4.0")]
/// pub struct ChargeV1 {
///     pub order: i64,
///     pub dollars: u32,
/// }
///
/// #[derive(Debug, Serialize, Deserialize, Job)]
/// #[job(
///     kind = "billing.charge",
///     version = "2.1.0",
///     readable_by = "2.0",
///     previous = ChargeV1,
///     queue = "billing",
///     max_failures = 10,
///     timeout = "30s"
/// )]
/// pub struct Charge {
///     pub order: i64,
///     pub cents: u64,
///     #[serde(default)]
///     pub memo: Option<String>,
/// }
///
/// impl From<ChargeV1> for Charge {
///     fn from(past: ChargeV1) -> Self {
///         Self { order: past.order, cents: u64::from(past.dollars) * 100, memo: None }
///     }
/// }
///
/// let charge = Charge::decode(1, r#"{ "order": 7, "dollars": 12 }"#)?;
/// assert_eq!(charge.cents, 1200);
/// assert_eq!(Charge::POLICY.queue, "billing");
/// # Ok::<(), jobs_core::DecodeError>(())
/// ```
#[proc_macro_derive(Job, attributes(job))]
pub fn job(input: TokenStream) -> TokenStream {
    derive(&parse_macro_input!(input), Derive::Job, package()).into()
}

/// Makes a struct or an enum the shape that a job had in an older major.
///
/// It implements `Versioned` and `Payload`, so that a newer shape can name it as its `previous`. It
/// is never enqueued, so it has no policy; it may be private, and deprecated, without a warning.
///
/// | option | value | default |
/// |---|---|---|
/// | `kind` | the kind of the job whose past this is, or one of its aliases | required |
/// | `version` | as of [`Job`](macro@Job): the newest minor that this major reached | required |
/// | `readable_by` | as of [`Job`](macro@Job) | the version itself |
/// | `previous` | the shape of a still older major, of the same kind | none |
/// | `crate` | as of [`Job`](macro@Job) | found in Cargo.toml |
///
/// # Errors
/// As of [`Job`](macro@Job); an option that only a job takes is an error that says so.
///
/// # Examples
/// ```
/// use jobs_core::{Line, PastJob, Versioned};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, PastJob)]
/// #[job(kind = "mail.digest", version = "1.0.0")]
/// struct DigestV1(String);
///
/// #[derive(Serialize, Deserialize, PastJob)]
/// #[job(kind = "mail.digest", version = "2.3.0", previous = DigestV1)]
/// struct DigestV2 {
///     to: u64,
/// }
///
/// impl TryFrom<DigestV1> for DigestV2 {
///     type Error = std::num::ParseIntError;
///
///     fn try_from(past: DigestV1) -> Result<Self, Self::Error> {
///         Ok(Self { to: past.0.parse()? })
///     }
/// }
///
/// assert_eq!(DigestV2::lines(), [Line { major: 1, minor: 0 }, Line { major: 2, minor: 3 }]);
/// assert_eq!(DigestV2::decode(1, r#""7""#)?.to, 7);
/// let error = DigestV2::decode(1, r#""seven""#).err().unwrap();
/// assert_eq!(error.to_string(), "the upcast failed: invalid digit found in string");
/// # Ok::<(), jobs_core::DecodeError>(())
/// ```
#[proc_macro_derive(PastJob, attributes(job))]
pub fn past_job(input: TokenStream) -> TokenStream {
    derive(&parse_macro_input!(input), Derive::PastJob, package()).into()
}

/// Makes a struct or an enum a checkpoint: how far a handler has come, for the next run to resume.
///
/// It implements `Versioned` and `Checkpoint`. The options stand in `#[checkpoint(…)]`. An enum of
/// named steps gives the handler an exhaustive match.
///
/// | option | value | default |
/// |---|---|---|
/// | `version` | as of [`Job`](macro@Job), and apart from the version of the job | required |
/// | `readable_by` | as of [`Job`](macro@Job) | the version itself |
/// | `previous` | the checkpoint of an older major, from which this one is made by `From` or `TryFrom` | none: older majors are refused |
/// | `crate` | as of [`Job`](macro@Job) | found in Cargo.toml |
///
/// # Errors
/// As of [`Job`](macro@Job); an option that only a job takes is an error that says so.
///
/// # Examples
/// ```
/// use jobs_core::{Checkpoint, Job};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Checkpoint)]
/// #[checkpoint(version = "1.0.0")]
/// enum ExportAt {
///     Rows { last_id: i64 },
///     Upload,
/// }
///
/// #[derive(Serialize, Deserialize, Job)]
/// #[job(kind = "reports.export", version = "1.0.0", checkpoint = ExportAt)]
/// struct ExportRows;
/// ```
#[proc_macro_derive(Checkpoint, attributes(checkpoint))]
pub fn checkpoint(input: TokenStream) -> TokenStream {
    derive(&parse_macro_input!(input), Derive::Checkpoint, package()).into()
}

/// The package that is being compiled. It takes part in the drift check once it has the folder.
fn package() -> Package {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(std::path::PathBuf::from);
    let is_locked = folder.is_some_and(|folder| folder.join("jobs.lock").is_dir());
    Package { find_crate: krate::find, is_locked }
}

fn derive(input: &DeriveInput, derive: Derive, package: Package) -> proc_macro2::TokenStream {
    let mut errors = Errors::default();
    let options = attr::read(&input.attrs, derive, &mut errors);
    let shape = valid::shape(input, derive, options, package, &mut errors);
    match (errors.into_compile_errors(), shape) {
        (None, Some(shape)) => expand::implementations(&shape),
        (Some(mut errors), Some(shape)) => {
            errors.extend(expand::implementations(&fallback::of(shape)));
            errors
        }
        (errors, None) => errors.expect("a shape is missing only with an error that says why"),
    }
}
