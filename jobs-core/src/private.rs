//! What the derives expand to. Not part of the public interface: any release may change it.
//!
//! An expansion holds as little code as possible: it names types and numbers, and what follows
//! from them is here, where it is compiled and tested once.

use std::fmt::Display;

pub use std::{
    assert,
    primitive::{str, u32},
    result::Result,
    time::Duration,
    vec::Vec,
};

pub use crate::job::{Checkpoint, DecodeError, Job, NoCheckpoint, Payload, Policy, Versioned};
pub use crate::version::{Line, MinReader, Version};

/// What a shape inherits from its `previous` one: its lines, and a way to read them.
///
/// All demands on a `previous` type meet in one constructor call, so that a mistake in it is one
/// error and not one for each use.
pub struct Past<Next> {
    kind: &'static str,
    major: u32,
    lines: fn() -> Vec<Line>,
    decode: fn(u32, &str) -> Result<Next, DecodeError>,
}

impl<Next: Versioned> Past<Next> {
    /// The past of a payload.
    pub const fn payload<P: Payload>() -> Self
    where
        Next: UpcastFrom<P>,
    {
        Self { kind: P::KIND, ..Self::versioned::<P>() }
    }

    /// The past of a checkpoint.
    pub const fn checkpoint<P: Checkpoint>() -> Self
    where
        Next: UpcastFrom<P>,
    {
        Self::versioned::<P>()
    }

    const fn versioned<P: Versioned>() -> Self
    where
        Next: UpcastFrom<P>,
    {
        let decode = |major, text: &str| {
            Next::upcast_from(P::decode(major, text)?).map_err(DecodeError::Upcast)
        };
        Self { kind: "", major: P::VERSION.major, lines: P::lines, decode }
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

    /// [`Versioned::decode`] of a shape with this past.
    ///
    /// # Errors
    /// As [`Versioned::decode`].
    pub fn decode(&self, major: u32, text: &str) -> Result<Next, DecodeError> {
        if major < Next::VERSION.major { (self.decode)(major, text) } else { decode(major, text) }
    }
}

/// [`Versioned::lines`] of a shape without a past.
pub fn lines<Own: Versioned>() -> Vec<Line> {
    vec![own_line::<Own>()]
}

/// [`Versioned::decode`] of a shape without a past.
///
/// # Errors
/// As [`Versioned::decode`]; also a major that the shape has no line for, since a reader never
/// guesses.
pub fn decode<Own: Versioned>(major: u32, text: &str) -> Result<Own, DecodeError> {
    let own = Own::VERSION.major;
    if major == own {
        return DecodeError::from_json(text);
    }
    let reason = format!("a text of major {major} was given to a shape of major {own}");
    Err(DecodeError::Malformed(serde::de::Error::custom(reason)))
}

/// A shape that can be made from an older one: every type that is `From` or `TryFrom` it.
#[diagnostic::on_unimplemented(
    message = "there is no upcast from `{P}` to `{Self}`",
    label = "`{Self}` can't be made from this type",
    note = "write `impl From<{P}> for {Self}`, or `impl TryFrom<{P}> for {Self}` with an \
            error that implements `Display`"
)]
pub trait UpcastFrom<P>: Sized {
    /// Converts; the error is the reason as text.
    ///
    /// # Errors
    /// What the type's own conversion says.
    fn upcast_from(past: P) -> Result<Self, String>;
}

#[diagnostic::do_not_recommend]
impl<P, Next> UpcastFrom<P> for Next
where
    Next: TryFrom<P>,
    Next::Error: Display,
{
    fn upcast_from(past: P) -> Result<Self, String> {
        Self::try_from(past).map_err(|error| error.to_string())
    }
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
