//! Rows on their way in, and claimed jobs on their way out. A statement takes its rows as one JSON
//! array, so a batch of any size is one statement with no limit of parameters.

use jobs_core::Fence;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::row;

/// A text in JSON that came from rows: UTF-8, or marked.
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes: a text that is no UTF-8 is one row's fault, and must not fail the others.
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(row::text(bytes)))
    }
}

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
