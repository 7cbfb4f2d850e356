//! Rows on their way in. A statement takes its rows as one JSON array, so a batch of any size is one
//! statement with no limit of parameters.

use jobs_core::Fence;
use serde::Serialize;

/// Rows as JSON text.
pub(super) fn rows<T: Serialize>(rows: &[T]) -> String {
    // Numbers, texts and lists of them: nothing that JSON can't hold.
    serde_json::to_string(rows).expect("texts and numbers are always JSON")
}

/// Fences as `[[job, claim number], …]`.
pub(super) fn fences(fences: &[Fence]) -> String {
    rows(&fences.iter().map(|fence| (fence.job.0, fence.claim.0)).collect::<Vec<_>>())
}

/// Fences as `{"job": claim number, …}`: read by SQLite in one pass, where an array in an array is
/// parsed once more for each.
pub(super) fn claims(fences: impl Iterator<Item = Fence>) -> String {
    use std::fmt::Write;
    let mut text = String::from("{");
    for Fence { job, claim } in fences {
        let comma = if text.len() > 1 { "," } else { "" };
        write!(text, "{comma}\"{job}\":{claim}").expect("a string takes any text");
    }
    text.push('}');
    text
}
