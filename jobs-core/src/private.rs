//! What the derives expand to. Not part of the public interface: any release may change it.

pub use std::{
    assert, concat,
    option::Option,
    primitive::{str, u32},
    result::Result,
    string::ToString,
    time::Duration,
    vec,
    vec::Vec,
};

pub use crate::job::{Checkpoint, DecodeError, Job, NoCheckpoint, Payload, Policy, Versioned};
pub use crate::version::{Line, MinReader, Version};

/// Decodes an older shape and converts it into the next one.
///
/// # Errors
/// As [`Versioned::decode`].
pub fn upcast<Past, Next>(major: u32, text: &str) -> Result<Next, DecodeError>
where
    Past: Versioned,
    Next: TryFrom<Past>,
    Next::Error: std::fmt::Display,
{
    let past = Past::decode(major, text)?;
    Next::try_from(past).map_err(|error| DecodeError::Upcast(error.to_string()))
}

/// Appends a shape's own line to those of its past.
pub fn lines_after<Past: Versioned>(own: Line) -> Vec<Line> {
    let mut lines = Past::lines();
    lines.push(own);
    lines
}

/// Whether two texts are equal, in a `const`.
pub const fn same_text(left: &str, right: &str) -> bool {
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

/// Whether a text is one of several, in a `const`.
pub const fn one_of(text: &str, texts: &[&str]) -> bool {
    let mut at = 0;
    while at < texts.len() {
        if same_text(text, texts[at]) {
            return true;
        }
        at += 1;
    }
    false
}
