//! Versions of payloads and checkpoints, and the one decision about them: may this build read it?
//!
//! 1. The writer vouches for old readers; a reader never guesses. What the writer did not vouch
//!    for is refused, not tried.
//! 2. Only (major, minor) decide; the patch is for people.
//! 3. [`judge`] is pure and the only place where a version decides anything. The claim statement
//!    narrows by [`Route`](crate::Route), but the verdict in Rust after the claim is the authority.
//!
//! Deliberately absent: ranges such as `^1.2`. They accept a 1.3 that nobody here has seen.

use std::fmt;

/// The version of a payload's or a checkpoint's shape: `MAJOR.MINOR.PATCH`, major at least 1.
///
/// There is no 0.x, no pre-release and no build part: a stored shape is a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Another meaning or an incompatible shape.
    pub major: u32,
    /// A shape that newer code reads directly.
    pub minor: u32,
    /// For people; decides nothing.
    pub patch: u32,
}

/// The oldest version whose readers may run a payload: the part of a version that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinReader {
    /// The same major as the payload's version.
    pub major: u32,
    /// At most the payload's own minor.
    pub minor: u32,
}

/// A span of versions that a build reads: every minor of one major up to and with `minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The major of the line.
    pub major: u32,
    /// The newest minor of it that this build knows.
    pub minor: u32,
}

/// The version texts of a row, parsed and found consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    version: Version,
    min_reader: MinReader,
}

/// The version texts of a row are unreadable or contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedVersion(String);

impl Version {
    /// Makes a version in a `const`.
    ///
    /// # Panics
    /// When `major` is 0: a stored shape has no 0.x.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        assert!(major >= 1, "a version's major is at least 1");
        Self { major, minor, patch }
    }

    /// Reads `MAJOR.MINOR.PATCH` or `MAJOR.MINOR`, without leading zeros, signs or other parts.
    ///
    /// # Errors
    /// [`MalformedVersion`] repeats the text and says what is expected.
    pub fn parse(text: &str) -> Result<Self, MalformedVersion> {
        let mut parts = text.splitn(3, '.').map(number);
        let malformed = || {
            MalformedVersion(format!(
                "{:?} is not MAJOR.MINOR.PATCH with a major of at least 1",
                text.chars().take(64).collect::<String>()
            ))
        };
        let (Some(Some(major @ 1..)), Some(Some(minor))) = (parts.next(), parts.next()) else {
            return Err(malformed());
        };
        let patch = parts.next().unwrap_or(Some(0)).ok_or_else(malformed)?;
        Ok(Self { major, minor, patch })
    }

    /// The version as its own oldest reader: what a row says that vouches for nobody.
    pub const fn own_reader(self) -> MinReader {
        MinReader { major: self.major, minor: self.minor }
    }
}

impl MinReader {
    /// Reads `MAJOR.MINOR`; a patch is allowed and ignored.
    ///
    /// # Errors
    /// As [`Version::parse`].
    pub fn parse(text: &str) -> Result<Self, MalformedVersion> {
        Version::parse(text).map(Version::own_reader)
    }
}

impl Stamp {
    /// Pairs a version with the oldest reader it is vouched for.
    ///
    /// # Errors
    /// [`MalformedVersion`] when the reader is of another major or newer than the version.
    pub fn new(version: Version, min_reader: MinReader) -> Result<Self, MalformedVersion> {
        if min_reader.major != version.major || min_reader.minor > version.minor {
            return Err(MalformedVersion(format!(
                "version {version} can't vouch for readers of {min_reader}"
            )));
        }
        Ok(Self { version, min_reader })
    }

    /// Reads the texts of a row; without a `min_reader` the version vouches for itself alone.
    ///
    /// # Errors
    /// [`MalformedVersion`] when a text is unreadable or the two contradict each other.
    pub fn parse(version: &str, min_reader: Option<&str>) -> Result<Self, MalformedVersion> {
        let version = Version::parse(version)?;
        let min_reader = min_reader.map_or(Ok(version.own_reader()), MinReader::parse)?;
        Self::new(version, min_reader)
    }

    /// The version that was written.
    pub fn version(self) -> Version {
        self.version
    }

    /// The oldest reader that the writer vouched for.
    pub fn min_reader(self) -> MinReader {
        self.min_reader
    }
}

/// What a build knows of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader<'a> {
    /// The build has no code for the kind.
    Unknown,
    /// The build declares that the kind is gone for good.
    Retired,
    /// The build reads these lines: oldest first, majors strictly rising, never empty.
    Reads(&'a [Line]),
}

/// Why a job is given back unread. None of them counts against the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// This build has no code for the kind.
    UnknownKind,
    /// Written by a newer build that did not vouch for this one.
    Newer,
    /// Older than every line of this build, and no upcast is declared.
    Older,
    /// The job's checkpoint is one that this build can't read.
    Checkpoint,
}

/// What a build may do with a payload of some version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The newest line covers it: decode and run.
    Run,
    /// The line of an older major covers it: decode as that, upcast step by step, run.
    Upcast {
        /// The major to decode as.
        from: u32,
    },
    /// Newer than the line of its major, but its writer vouched for this reader: decode as that
    /// line's shape and run; if it does not decode after all, refuse as [`Refusal::Newer`].
    TolerantRead {
        /// The major to decode as.
        from: u32,
    },
    /// Give it back unread.
    Refuse(Refusal),
    /// The kind is retired here: a dead letter with the class `retired`.
    Retired,
}

/// Decides what a build may do with a payload: the table of the versions, as one function.
///
/// # Panics
/// When `reader` reads no lines at all: a registry never makes such an entry.
pub fn judge(stamp: Stamp, reader: Reader<'_>) -> Verdict {
    let lines = match reader {
        Reader::Unknown => return Verdict::Refuse(Refusal::UnknownKind),
        Reader::Retired => return Verdict::Retired,
        Reader::Reads(lines) => lines,
    };
    let newest = lines.last().expect("a kind that is read has at least one line");
    let major = stamp.version.major;
    let Some(line) = lines.iter().find(|line| line.major == major) else {
        let refusal = if major > newest.major { Refusal::Newer } else { Refusal::Older };
        return Verdict::Refuse(refusal);
    };
    if stamp.version.minor <= line.minor {
        if line.major == newest.major { Verdict::Run } else { Verdict::Upcast { from: major } }
    } else if stamp.min_reader.minor <= line.minor {
        Verdict::TolerantRead { from: major }
    } else {
        Verdict::Refuse(Refusal::Newer)
    }
}

impl Refusal {
    /// The refusal's stable name, as stored, logged and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownKind => "unknown_kind",
            Self::Newer => "newer",
            Self::Older => "older",
            Self::Checkpoint => "checkpoint",
        }
    }
}

fn number(text: &str) -> Option<u32> {
    let is_canonical = text == "0" || !text.starts_with('0');
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_canonical && is_digits { text.parse().ok() } else { None }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Display for MinReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor } = self;
        match minor {
            0 => write!(f, "{major}.0"),
            _ => write!(f, "{major}.0 to {major}.{minor}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for MalformedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MalformedVersion {}

#[cfg(test)]
mod tests;
