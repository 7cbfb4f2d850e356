//! What a build says about itself: the kinds that it reads and how.

use serde::Serialize;

use crate::registry::Handlers;

#[derive(Serialize)]
struct Manifest<'a> {
    handles: Vec<Kind<'a>>,
}

#[derive(Serialize)]
struct Kind<'a> {
    #[serde(rename = "kind")]
    name: &'a str,
    aliases: &'a [&'a str],
    /// The newest version of each line that is read, oldest first.
    reads: Vec<String>,
    checkpoint_reads: Vec<String>,
    queue: &'a str,
    max_failures: u32,
    timeout_ms: Option<u128>,
}

/// The manifest as JSON text.
pub(super) fn text<S>(handlers: &Handlers<S>) -> String {
    let newest = |lines: &[jobs_core::Line]| {
        lines.iter().map(|line| format!("{}.{}", line.major, line.minor)).collect()
    };
    let mut kinds: Vec<Kind<'_>> = handlers
        .all()
        .iter()
        .map(|handled| Kind {
            name: &handled.kind,
            aliases: handled.aliases,
            reads: newest(&handled.lines),
            checkpoint_reads: newest(&handled.checkpoint_lines),
            queue: handled.policy.queue,
            max_failures: handled.policy.max_failures,
            timeout_ms: handled.policy.timeout.map(|timeout| timeout.as_millis()),
        })
        .collect();
    kinds.sort_by_key(|kind| kind.name);
    serde_json::to_string(&Manifest { handles: kinds }).expect("a manifest is plain JSON")
}
