//! Names parsed once: a value of these types is known to be well formed and storable.
//!
//! 1. No name holds a NUL or another control character, so every store keeps it as it is.
//! 2. No name is empty or longer than its limit, so every index takes it.
//!
//! Rows can hold anything, since other languages insert too; what is read from a row therefore
//! stays text until it is parsed here.

use std::fmt;
use std::sync::Arc;

/// The longest kind, in bytes.
pub const MAX_KIND_BYTES: usize = 96;
/// The longest queue name, in bytes.
pub const MAX_QUEUE_BYTES: usize = 255;
/// The longest unique key, in bytes.
pub const MAX_UNIQUE_KEY_BYTES: usize = 512;
/// The longest build id, worker name or name of a schedule, in bytes.
pub const MAX_LABEL_BYTES: usize = 255;

/// Why a text is not a name: one sentence that says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidName {
    what: &'static str,
    text: String,
    rule: &'static str,
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a {}: {}", self.text, self.what, self.rule)
    }
}

impl std::error::Error for InvalidName {}

const KIND_RULE: &str = "write snake_case segments joined by dots, such as `billing.charge`; \
     each starts with a letter, at most 96 bytes in all, and `jobs.` is reserved";

/// Whether a text is a well-formed kind that applications may use.
///
/// Dot-separated `snake_case` segments, each starting with a letter; at most [`MAX_KIND_BYTES`];
/// not `jobs` and nothing below `jobs.`, which are the framework's own.
pub const fn is_kind(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > MAX_KIND_BYTES || is_reserved(bytes) {
        return false;
    }
    let mut at = 0;
    let mut starts_segment = true;
    while at < bytes.len() {
        match bytes[at] {
            b'a'..=b'z' => starts_segment = false,
            b'0'..=b'9' | b'_' if !starts_segment => {}
            b'.' if !starts_segment => starts_segment = true,
            _ => return false,
        }
        at += 1;
    }
    !starts_segment
}

const fn is_reserved(bytes: &[u8]) -> bool {
    bytes.len() >= 4
        && bytes[0] == b'j'
        && bytes[1] == b'o'
        && bytes[2] == b'b'
        && bytes[3] == b's'
        && (bytes.len() == 4 || bytes[4] == b'.')
}

/// The stable name of what a job is, such as `billing.charge`. See [`is_kind`] for its form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(Box<str>);

/// The name of a queue: 1 to 255 bytes of any text without control characters. Clones share it, since
/// every run has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

/// The key of a unique job: 1 to 512 bytes of any text without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueKey(Box<str>);

/// The application's label of one build, such as `shop 1.8.0+4f2a9c1`: 1 to 255 bytes of any text
/// without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<str>);

/// The name of a schedule, such as `billing.nightly`: 1 to 255 bytes of any text without control
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleName(Box<str>);

/// A worker's name for people, such as a host name; never its identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName(Box<str>);

fn plain(
    what: &'static str,
    rule: &'static str,
    text: &str,
    longest: usize,
) -> Result<Box<str>, InvalidName> {
    if text.is_empty() || text.len() > longest || text.chars().any(char::is_control) {
        return Err(InvalidName { what, text: shortened(text), rule });
    }
    Ok(text.into())
}

/// An error names the text it is about, but never repeats megabytes of it.
fn shortened(text: &str) -> String {
    text.chars().take(128).collect()
}

macro_rules! name {
    ($name:ident, $parse:expr) => {
        impl $name {
            /// Checks a text and keeps it.
            ///
            /// # Errors
            /// [`InvalidName`] says which rule the text breaks.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
                let parse: fn(&str) -> Result<Box<str>, InvalidName> = $parse;
                parse(text.as_ref()).map(|text| Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(Kind, |text| {
    if is_kind(text) {
        Ok(text.into())
    } else {
        Err(InvalidName { what: "kind", text: shortened(text), rule: KIND_RULE })
    }
});
name!(QueueName, |text| plain(
    "queue name",
    "write 1 to 255 bytes without control characters",
    text,
    MAX_QUEUE_BYTES
));
name!(UniqueKey, |text| plain(
    "unique key",
    "write 1 to 512 bytes without control characters",
    text,
    MAX_UNIQUE_KEY_BYTES
));
name!(BuildId, |text| plain(
    "build id",
    "write 1 to 255 bytes without control characters",
    text,
    MAX_LABEL_BYTES
));
name!(WorkerName, |text| plain(
    "worker name",
    "write 1 to 255 bytes without control characters",
    text,
    MAX_LABEL_BYTES
));
name!(ScheduleName, |text| plain(
    "name of a schedule",
    "write 1 to 255 bytes without control characters",
    text,
    MAX_LABEL_BYTES
));

impl QueueName {
    /// The queue of jobs that name none: `default`.
    pub const DEFAULT: &'static str = "default";
}

impl Default for QueueName {
    fn default() -> Self {
        Self(Self::DEFAULT.into())
    }
}

impl Default for BuildId {
    /// `unlabelled`: the application did not say.
    fn default() -> Self {
        Self("unlabelled".into())
    }
}
