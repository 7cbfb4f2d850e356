//! Values to JSON text and back, exactly.
//!
//! 1. Every integer up to 64 bits keeps all its digits, every floating-point number all its bits (the feature
//!    `float_roundtrip` of `serde_json`: without it one in a few is read as its neighbour); a NUL keeps its
//!    place as an escape.
//! 2. What JSON can't keep is refused with the path of the field, never replaced: `serde_json`
//!    alone writes NaN and the infinities as `null`.
//! 3. What is too deeply nested to be read again is refused too: its job would die unread.

mod finite;

use std::fmt;

use serde::Serialize;

/// Why a value has no exact JSON text.
#[derive(Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// A number is NaN or infinite.
    NotFinite {
        /// The field, such as `lines[3].price`; empty when the value itself is the number.
        path: String,
    },
    /// It is nested more deeply than its reader follows: 127 lists, maps and structs in one another.
    TooDeep,
    /// The value's own `Serialize` failed, or it has a map with keys that are not texts.
    Json(serde_json::Error),
}

/// Encodes a value as compact JSON.
///
/// # Errors
/// [`EncodeError`] names the field that can't be kept.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, EncodeError> {
    // First, so that no value is too deep for the stack of what writes it.
    match finite::check(value) {
        Err(finite::Unkept::NotFinite(path)) => Err(EncodeError::NotFinite { path }),
        Err(finite::Unkept::TooDeep) => Err(EncodeError::TooDeep),
        Ok(()) => serde_json::to_string(value).map_err(EncodeError::Json),
    }
}

/// Checks that JSON text, which nobody here has encoded, is nested no more deeply than its reader follows.
/// What is no JSON is not told.
///
/// # Errors
/// [`EncodeError::TooDeep`].
pub fn check_levels(text: &str) -> Result<(), EncodeError> {
    let (mut levels, mut in_text, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => levels += 1,
            b']' | b'}' if !in_text => levels -= 1,
            _ => {}
        }
        if levels > i64::from(finite::MOST_LEVELS) {
            return Err(EncodeError::TooDeep);
        }
    }
    Ok(())
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { path } if path.is_empty() => {
                f.write_str("the value is NaN or infinite, which JSON can't keep")
            }
            Self::NotFinite { path } => {
                write!(f, "the field `{path}` is NaN or infinite, which JSON can't keep")
            }
            Self::TooDeep => write!(
                f,
                "the value is nested more than {} levels deep, which no worker would read again; store it as \
                 a text of its own, or flatten it",
                finite::MOST_LEVELS
            ),
            Self::Json(_) => f.write_str("the value does not serialise as JSON"),
        }
    }
}

impl std::error::Error for EncodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::NotFinite { .. } | Self::TooDeep => None,
        }
    }
}

#[cfg(test)]
mod tests;
