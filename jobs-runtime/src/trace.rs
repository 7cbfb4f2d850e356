//! Trace contexts, carried from the enqueue of a job to its runs in a W3C `traceparent` header.
//!
//! 1. A job that a handler enqueues belongs to the trace of the run that enqueues it.
//! 2. Outside of a run the application says which trace it is in, if any; nothing is made up.
//! 3. Every run is a span of its own: what it enqueues names it as the parent.
//!
//! Deliberately absent: an exporter. The span of a run has the trace's fields, so whatever subscribes
//! to `tracing` can join them.

use std::fmt;
use std::str::FromStr;

use jobs_core::Headers;

/// The header of a job that holds its trace context.
pub const TRACEPARENT: &str = "traceparent";

/// A place in a trace, as the W3C recommendation writes it: `00-<trace>-<parent>-<flags>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace; not zero.
    pub trace_id: u128,
    /// The span that it was passed on by; not zero.
    pub parent_id: u64,
    /// The lowest bit says that the trace is recorded.
    pub flags: u8,
}

/// A text is no trace context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTraceContext;

tokio::task_local! {
    /// The context of what the run of this task enqueues.
    static CURRENT: TraceContext;
}

/// The context of the run that this is called in.
pub(crate) fn current() -> Option<TraceContext> {
    CURRENT.try_with(|context| *context).ok()
}

/// Runs a future within a run's context, where it has one.
pub(crate) async fn within<F: Future>(context: Option<TraceContext>, future: F) -> F::Output {
    match context {
        Some(context) => CURRENT.scope(context, future).await,
        None => future.await,
    }
}

/// The context that a job came with; a malformed one counts as none.
pub(crate) fn of(headers: &Headers) -> Option<TraceContext> {
    headers.get(TRACEPARENT)?.parse().ok()
}

impl TraceContext {
    /// The same trace, seen from a span of its own.
    pub(crate) fn span(self, drawn: u64) -> Self {
        Self { parent_id: drawn.max(1), ..self }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, parent_id, flags } = self;
        write!(f, "00-{trace_id:032x}-{parent_id:016x}-{flags:02x}")
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    /// Reads version 00, and of later versions what they share with it.
    fn from_str(text: &str) -> Result<Self, InvalidTraceContext> {
        let mut parts = text.split('-');
        let mut part = |digits: usize| {
            let part = parts.next().filter(|part| part.len() == digits)?;
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if part.bytes().all(is_hex) { u128::from_str_radix(part, 16).ok() } else { None }
        };
        let (version, trace_id) = (part(2), part(32).filter(|id| *id != 0));
        let (parent_id, flags) = (part(16).filter(|id| *id != 0), part(2));
        let has_more = parts.next().is_some();
        let is_read = version.is_some_and(|version| version != 0xff && (version > 0 || !has_more));
        match (trace_id, parent_id, flags) {
            (Some(trace_id), Some(parent_id), Some(flags)) if is_read => Ok(Self {
                trace_id,
                parent_id: u64::try_from(parent_id).map_err(|_| InvalidTraceContext)?,
                flags: u8::try_from(flags).map_err(|_| InvalidTraceContext)?,
            }),
            _ => Err(InvalidTraceContext),
        }
    }
}

impl fmt::Display for InvalidTraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a trace context: write `00-`, 32, 16 and 2 hexadecimal digits, with dashes",
        )
    }
}

impl std::error::Error for InvalidTraceContext {}

#[cfg(test)]
mod tests;
