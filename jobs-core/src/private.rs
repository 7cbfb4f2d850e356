//! What the derives expand to. Not part of the public interface: any release may change it.
//!
//! An expansion holds as little code as possible: it names types and numbers, and what follows
//! from them is here, where it is compiled and tested once.

use std::fmt::Display;
pub use std::{
    assert,
    option::Option::{self, None, Some},
    primitive::{str, u32, u64},
    result::Result,
    string::String,
    time::Duration,
    vec::Vec,
};

use serde::{Serialize, de::DeserializeOwned};

pub use crate::__jobs_lock_test as lock_test;
pub use crate::__jobs_lock_watch as lock_watch;
#[cfg(feature = "schema")]
pub use crate::lock::{Described, Part, Probe, Sampled, Subject, Undescribed, Unsampled};

use crate::codec;
pub use crate::codec::EncodeError;
pub use crate::job::{
    Checkpoint, DecodeError, Job, NoCheckpoint, OldCheckpoint, OnStop, Payload, Policy, Versioned,
};
pub use crate::retry::Ladder;
pub use crate::schedule::{CatchUp, Schedule};
pub use crate::version::{Line, MinReader, Version};

/// What a shape inherits from its `previous` one: its kind, its lines, and a way to read them.
pub struct Past<Next> {
    kind: &'static str,
    major: u32,
    lines: fn() -> Vec<Line>,
    decode: fn(u32, &str) -> Result<Next, DecodeError>,
}

impl<Next: Versioned> Past<Next> {
    /// The past that a shape is, and how a text of it becomes the next one.
    ///
    /// The traits of `P` are not demanded here: the expansion names each as `<P as …>`, because
    /// rustc says of such a path what is missing, and of a bound also where the bound stands.
    pub const fn of<P>(
        previous: &Previous<P>,
        decode: fn(u32, &str) -> Result<Next, DecodeError>,
    ) -> Self {
        let Previous { kind, major, lines, .. } = *previous;
        Self { kind, major, lines, decode }
    }

    /// Whether the past is of the kind, or of one that the kind was known by.
    ///
    /// A payload whose derive failed has an empty kind, which passes: its own error is enough.
    pub const fn is_of_kind(&self, kind: &str, aliases: &[&str]) -> bool {
        self.kind.is_empty() || is_same(self.kind, kind) || is_one_of(self.kind, aliases)
    }

    /// Whether the past has an older major than the shape that follows it.
    pub const fn is_older(&self) -> bool {
        self.major < Next::VERSION.major
    }

    /// [`Versioned::lines`] of a shape with this past.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = (self.lines)();
        lines.push(own_line::<Next>());
        lines
    }
}

/// [`Versioned::lines`] of a shape without a past.
pub fn lines<Own: Versioned>() -> Vec<Line> {
    vec![own_line::<Own>()]
}

/// A shape that is written as JSON: every type that is `Serialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be stored: it is not `Serialize`",
    label = "add `#[derive(serde::Serialize)]` to this type"
)]
pub trait Write {
    /// [`Versioned::encode`].
    ///
    /// # Errors
    /// As [`Versioned::encode`].
    fn write(&self) -> Result<String, EncodeError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Write for T {
    fn write(&self) -> Result<String, EncodeError> {
        codec::encode(self)
    }
}

/// A shape that is read as JSON: every type that is `Deserialize` and owns what it holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be read from the store: it is not `Deserialize`",
    label = "add `#[derive(serde::Deserialize)]` to this type"
)]
pub trait Read: Sized {
    /// [`Versioned::decode`] of a shape with or without a past.
    ///
    /// # Errors
    /// As [`Versioned::decode`].
    fn read(major: u32, text: &str, past: Option<&Past<Self>>) -> Result<Self, DecodeError>
    where
        Self: Versioned;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> Read for T {
    fn read(major: u32, text: &str, past: Option<&Past<Self>>) -> Result<Self, DecodeError>
    where
        Self: Versioned,
    {
        match past {
            _ if major == Self::VERSION.major => DecodeError::from_json(text),
            Some(past) if major < Self::VERSION.major => (past.decode)(major, text),
            _ => Err(DecodeError::NoLine { major }),
        }
    }
}

/// A job that can be enqueued by the clock: one that has a payload of its own to begin with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no payload to enqueue by the clock: it is not `Default`",
    label = "add `#[derive(Default)]` to this type, or declare its schedule with a payload: \
             `Registry::schedule`"
)]
pub trait Tickable: Sized {
    /// The payload of every tick.
    fn payload() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> Tickable for T {
    fn payload() -> Self {
        Self::default()
    }
}

/// A schedule as all that a job has.
pub fn scheduled(schedule: Schedule) -> Vec<Schedule> {
    vec![schedule]
}

/// The text of the fields that make a job unique.
///
/// # Errors
/// As [`Versioned::encode`].
pub fn unique_key(fields: &impl Serialize) -> Result<String, EncodeError> {
    codec::encode(fields)
}

/// A shape that is the past of another.
pub struct Previous<P> {
    kind: &'static str,
    major: u32,
    lines: fn() -> Vec<Line>,
    decode: fn(u32, &str) -> Result<P, DecodeError>,
}

impl<P: Versioned> Previous<P> {
    const fn of_kind(kind: &'static str) -> Self {
        Self { kind, major: P::VERSION.major, lines: P::lines, decode: P::decode }
    }
}

impl<P> Previous<P> {
    /// [`Versioned::decode`] of the shape.
    ///
    /// # Errors
    /// As [`Versioned::decode`].
    pub fn decode(&self, major: u32, text: &str) -> Result<P, DecodeError> {
        (self.decode)(major, text)
    }
}

/// A payload as the past of a newer one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a payload",
    label = "add `#[derive(PastJob)]` to this type"
)]
pub trait PastPayload: Sized {
    /// What the newer one takes of it.
    const PREVIOUS: Previous<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Payload> PastPayload for T {
    const PREVIOUS: Previous<Self> = Previous::of_kind(T::KIND);
}

/// A checkpoint as the past of a newer one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a checkpoint",
    label = "add `#[derive(Checkpoint)]` to this type"
)]
pub trait PastCheckpoint: Sized {
    /// What the newer one takes of it.
    const PREVIOUS: Previous<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Checkpoint> PastCheckpoint for T {
    const PREVIOUS: Previous<Self> = Previous::of_kind("");
}

/// A checkpoint that a job names as its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a checkpoint",
    label = "add `#[derive(Checkpoint)]` and `#[checkpoint(version = \"1.0.0\")]` to this type"
)]
pub trait OwnCheckpoint {
    /// The type itself.
    type Itself: Checkpoint;
}

#[diagnostic::do_not_recommend]
impl<T: Checkpoint> OwnCheckpoint for T {
    type Itself = T;
}

/// A shape that can be made from an older one: every type that is `From` or `TryFrom` it.
#[diagnostic::on_unimplemented(
    message = "there is no upcast from `{P}` to `{Self}`",
    label = "`{Self}` can't be made from this type",
    note = "write `impl From<{P}> for {Self}`, or `impl TryFrom<{P}> for {Self}` with an \
            error that implements `Display`"
)]
pub trait UpcastFrom<P>: Sized {
    /// Converts what was decoded; the error of the conversion is kept as text.
    ///
    /// # Errors
    /// That of decoding, or [`DecodeError::Upcast`].
    fn upcast_from(past: Result<P, DecodeError>) -> Result<Self, DecodeError>;
}

#[diagnostic::do_not_recommend]
impl<P, Next> UpcastFrom<P> for Next
where
    Next: TryFrom<P>,
    Next::Error: Display,
{
    fn upcast_from(past: Result<P, DecodeError>) -> Result<Self, DecodeError> {
        Self::try_from(past?).map_err(|error| DecodeError::Upcast(error.to_string()))
    }
}

/// The drift test of a shape: see [`lock`](crate::lock).
///
/// The choice is made here, by a feature of this crate; a `cfg` in an expansion would ask the user's.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! __jobs_lock_test {
    ($test:ident, $part:ident, $shape:ty, $kinds:expr) => {
        #[allow(unused_imports, dead_code, deprecated, clippy::needless_borrow)]
        #[::core::prelude::v1::test]
        fn $test() {
            use $crate::__private::{
                Described as _, Sampled as _, Undescribed as _, Unsampled as _,
            };
            let probe = $crate::__private::Probe::<$shape>::new();
            let (schemas, samples) = ((&probe).schemas(), (&probe).samples());
            let part = $crate::__private::Part::$part;
            $crate::__private::Subject::of::<$shape>(&$kinds, part, schemas, samples)
                .verify(::core::env!("CARGO_MANIFEST_DIR"));
        }
    };
}

/// Nothing: the feature `schema` is off.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __jobs_lock_test {
    ($($shape:tt)*) => {};
}

/// Notes that the build depends on `JOBS_LOCK`.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! __jobs_lock_watch {
    () => {
        const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!("JOBS_LOCK");
    };
}

/// Nothing: the feature `schema` is off.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __jobs_lock_watch {
    () => {};
}

fn own_line<Own: Versioned>() -> Line {
    Line { major: Own::VERSION.major, minor: Own::VERSION.minor }
}

const fn is_one_of(text: &str, texts: &[&str]) -> bool {
    let mut at = 0;
    while at < texts.len() {
        if is_same(text, texts[at]) {
            return true;
        }
        at += 1;
    }
    false
}

/// `==` of texts, which a `const` can't use.
const fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(all(test, feature = "derive"))]
#[path = "private/tests.rs"]
mod tests;
