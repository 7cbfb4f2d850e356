//! Routes: what the ready index is ordered by, so that a claim never touches what it can't read.
//!
//! A route is `kind@major.min_reader_minor`. Stores derive it from the row's own columns, so no
//! writer can falsify it. It is text that came from a row: it may be malformed.
//!
//! A suspect, a job that one more crash may end, has a route of its own: so ordinary claims step over
//! it at no cost. The mark ends in what no reader's text can: a reader's text in a route has at most
//! one dot.

use std::fmt;

use crate::transition::MAX_CRASHES;
use crate::version::{MinReader, Reader, Refusal};

/// A job with so many crashes in a row is a suspect: it is one crash away from the ceiling, and its
/// last chance is to run alone.
pub const SUSPECT_CRASHES: u32 = MAX_CRASHES - 1;

/// What the route of a suspect ends in.
const SUSPECT: &str = "..suspect";

/// The route of a stored job, as the store derives it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(Box<str>);

/// What a build can tell about the jobs of a route without looking at any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteVerdict {
    /// Worth claiming: most of its jobs will run here.
    Reads,
    /// The route itself proves that this build can't read it.
    Foreign(Refusal),
    /// Its version text is unreadable: any worker may take the jobs, to end them as malformed.
    Malformed,
}

impl Route {
    /// The route of the jobs of a kind that a reader must be at least `min_reader` for.
    pub fn new(kind: &str, min_reader: MinReader) -> Self {
        Self(format!("{kind}@{min_reader}").into())
    }

    /// A route as the store derived it, well formed or not.
    pub fn from_store(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Derives the route of a row from its texts, as the SQL stores do: the reader's text up to its
    /// second dot.
    pub fn derive(kind: &str, version: &str, min_reader: Option<&str>) -> Self {
        let reader = min_reader.unwrap_or(version);
        let mut parts = reader.splitn(3, '.');
        let major = parts.next().unwrap_or_default();
        let text = match parts.next() {
            Some(minor) => format!("{kind}@{major}.{minor}"),
            None => format!("{kind}@{major}"),
        };
        Self(text.into())
    }

    /// The route of a job of this route that has crashed so many times in a row.
    #[must_use]
    pub fn after_crashes(self, crashes: u32) -> Self {
        let is_new = crashes >= SUSPECT_CRASHES && !self.is_suspect();
        if is_new { Self(format!("{self}{SUSPECT}").into()) } else { self }
    }

    /// Whether its jobs are suspects.
    pub fn is_suspect(&self) -> bool {
        self.0.ends_with(SUSPECT)
    }

    /// The route as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind and the oldest reader, where the route is well formed.
    pub fn parts(&self) -> Option<(&str, MinReader)> {
        let text = self.0.strip_suffix(SUSPECT).unwrap_or(&self.0);
        let (kind, reader) = text.rsplit_once('@')?;
        MinReader::parse(reader).ok().map(|reader| (kind, reader))
    }

    /// What a build that reads the route's kind like this can tell of the route.
    ///
    /// It says [`Foreign`](RouteVerdict::Foreign) only for what holds for every job of the route,
    /// so it may say [`Reads`](RouteVerdict::Reads) for jobs that are refused one by one.
    ///
    /// # Panics
    /// As [`judge`](crate::judge).
    pub fn judge<'a>(&self, reader: impl FnOnce(&str) -> Reader<'a>) -> RouteVerdict {
        let Some((kind, min_reader)) = self.parts() else {
            return RouteVerdict::Malformed;
        };
        let lines = match reader(kind) {
            Reader::Unknown => return RouteVerdict::Foreign(Refusal::UnknownKind),
            Reader::Retired => return RouteVerdict::Reads,
            Reader::Reads(lines) => lines,
        };
        let newest = lines.last().expect("a kind that is read has at least one line");
        match lines.iter().find(|line| line.major == min_reader.major) {
            Some(line) if min_reader.minor > line.minor => RouteVerdict::Foreign(Refusal::Newer),
            Some(_) => RouteVerdict::Reads,
            None if min_reader.major > newest.major => RouteVerdict::Foreign(Refusal::Newer),
            None => RouteVerdict::Foreign(Refusal::Older),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
