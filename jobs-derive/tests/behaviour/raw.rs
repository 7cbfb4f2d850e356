//! Raw identifiers leave no `r#` in what is stored, and serde's own names win.

use jobs_core::{Checkpoint, Job, PastJob, Payload, Versioned};
use serde::{Deserialize, Serialize};

use crate::stored;

#[derive(Debug, PartialEq, Serialize, Deserialize, PastJob)]
#[job(kind = "yard.move", version = "1.0.0")]
struct r#Become {
    r#type: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "yard.move", version = "2.0.0", previous = r#Become, checkpoint = r#Yield)]
struct r#Move {
    r#type: String,
    r#gen: u8,
    #[serde(rename = "r#as written")]
    r#as: u8,
}

impl From<r#Become> for r#Move {
    fn from(past: r#Become) -> Self {
        Self { r#type: past.r#type, r#gen: 0, r#as: 0 }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[expect(non_camel_case_types, reason = "the names must be keywords")]
enum r#Yield {
    r#async { r#in: u8 },
    r#loop,
}

#[test]
fn stored_names_have_no_raw_prefix_unless_serde_says_so() {
    let moved = r#Move { r#type: "box".to_owned(), r#gen: 1, r#as: 2 };
    let (text, read) = stored(&moved);
    assert_eq!(text, r#"{"type":"box","gen":1,"r#as written":2}"#);
    assert_eq!(read, moved);
    assert_eq!(r#Move::KIND, "yard.move");
    let past = r#Move::decode(1, r#"{"type":"box"}"#).unwrap();
    assert_eq!(past, r#Move { r#type: "box".to_owned(), r#gen: 0, r#as: 0 });
}

#[test]
fn raw_variants_take_the_names_that_serde_gives_them() {
    let (text, read) = stored(&r#Yield::r#async { r#in: 1 });
    assert_eq!(text, r#"{"ASYNC":{"in":1}}"#);
    assert_eq!(read, r#Yield::r#async { r#in: 1 });
    assert_eq!(stored(&r#Yield::r#loop).0, r#""LOOP""#);
}
