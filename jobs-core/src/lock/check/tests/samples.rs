//! Golden samples and the proof of `readable_by`.

use super::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Plain {
    a: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct WithMemo {
    a: u8,
    memo: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct WithNote {
    a: u8,
    memo: Option<String>,
    #[serde(default)]
    note: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Wider {
    a: u16,
}

fn samples(folder: &Path, version: (u32, u32)) -> Vec<String> {
    let locked = crate::lock::file::Folder::of(folder, "test.drift", Part::Payload).read(version);
    locked.unwrap().samples.iter().map(|sample| sample.get().to_owned()).collect()
}

#[test]
fn samples_are_made_full_and_bare_and_for_each_variant() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct It {
        to: Step<u8>,
        memo: Option<String>,
        many: Vec<i64>,
    }
    let folder = TempDir::new().unwrap();
    lock::<It>(folder.path(), (1, 0));
    let wanted = [
        r#"{"to":"Idle","memo":"text","many":[7]}"#,
        r#"{"to":{"Rows":{"at":7}},"memo":"text","many":[7]}"#,
        r#"{"to":"Idle","memo":null,"many":[]}"#,
    ];
    let compact = |text: &String| text.split_whitespace().collect::<String>();
    assert_eq!(samples(folder.path(), (1, 0)).iter().map(compact).collect::<Vec<_>>(), wanted);
}

#[test]
fn a_type_that_holds_itself_has_samples_too() {
    let folder = TempDir::new().unwrap();
    lock::<older::Tree>(folder.path(), (1, 0));
    assert!(!samples(folder.path(), (1, 0)).is_empty());
}

#[test]
fn a_sample_that_no_longer_decodes_fails_the_newest_version_too() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Card {
        #[serde(deserialize_with = "long")]
        card: String,
    }
    fn long<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        let text = String::deserialize(from)?;
        if text.len() > 8 { Ok(text) } else { Err(serde::de::Error::custom("too short")) }
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Older {
        card: String,
    }
    let folder = TempDir::new().unwrap();
    lock::<Older>(folder.path(), (1, 0));
    for version in [(1, 0), (1, 1)] {
        let error = subject::<Card>(version).check(folder.path(), Mode::Update).unwrap_err();
        assert!(error.contains("a row of `test.drift` 1.0 no longer decodes"), "{error}");
        assert!(error.contains("too short"), "{error}");
    }
    // Another major does not say that it reads it.
    subject::<Card>((2, 0)).check(folder.path(), Mode::Update).unwrap();
}

#[test]
fn a_sample_that_is_written_otherwise_is_a_changed_representation() {
    fn loud<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&text.to_uppercase())
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Older {
        name: String,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Newer {
        #[serde(serialize_with = "loud")]
        #[schemars(with = "String")]
        name: String,
    }
    let folder = TempDir::new().unwrap();
    lock::<Older>(folder.path(), (1, 0));
    let error = subject::<Newer>((1, 0)).check(folder.path(), Mode::Check).unwrap_err();
    assert!(error.contains("changed representation, which needs a major"), "{error}");
}

#[test]
fn an_author_may_give_samples() {
    let folder = TempDir::new().unwrap();
    let given = Subject { samples: vec![r#"{"a":255}"#.to_owned()], ..subject::<Plain>((1, 0)) };
    given.check(folder.path(), Mode::Update).unwrap();
    assert_eq!(samples(folder.path(), (1, 0)).len(), 1);
    assert!(samples(folder.path(), (1, 0))[0].contains("255"));
}

#[test]
fn readable_by_is_proven_where_only_fields_with_a_default_were_added() {
    let folder = TempDir::new().unwrap();
    lock::<Plain>(folder.path(), (1, 0));
    lock::<WithMemo>(folder.path(), (1, 1));
    readable_by::<WithNote>((1, 2), (1, 0)).check(folder.path(), Mode::Update).unwrap();
}

#[test]
fn readable_by_is_refused_where_a_reader_denies_unknown_fields() {
    let folder = TempDir::new().unwrap();
    lock::<Strict>(folder.path(), (1, 0));
    lock::<Plain>(folder.path(), (1, 1));
    // A reader in the range counts, not only the oldest.
    readable_by::<WithMemo>((1, 2), (1, 1)).check(folder.path(), Mode::Check).unwrap_err();
    let error = readable_by::<WithMemo>((1, 2), (1, 0)).check(folder.path(), Mode::Update);
    let error = error.unwrap_err();
    assert!(error.contains("`memo`: that reader denies unknown fields"), "{error}");
    assert!(error.contains("1.0 can't read this shape"), "{error}");
}

#[test]
fn readable_by_is_refused_for_any_other_change() {
    let folder = TempDir::new().unwrap();
    lock::<Plain>(folder.path(), (1, 0));
    let error = readable_by::<Wider>((1, 1), (1, 0)).check(folder.path(), Mode::Update);
    let error = error.unwrap_err();
    assert!(error.contains("`a`: widened type"), "{error}");
    assert!(error.contains("write `readable_by = \"1.1\"` or leave it out"), "{error}");
}

#[test]
fn readable_by_a_version_without_a_lock_is_unproven() {
    let folder = TempDir::new().unwrap();
    lock::<WithMemo>(folder.path(), (1, 1));
    let error = readable_by::<WithNote>((1, 2), (1, 0)).check(folder.path(), Mode::Update);
    assert!(error.unwrap_err().contains("`readable_by = \"1.0\"` is unproven"));
}
