//! Every class of change, on a shape itself, within a list, an option and a variant: which class it
//! is, and which versions the check lets it have.

use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{Mode, Subject};
use crate::lock::diff::{Bump, Class, diff};
use crate::lock::{Part, Schemas};
use crate::version::Line;

mod files;
mod samples;

trait Stored: Serialize + DeserializeOwned + JsonSchema {}

impl<T: Serialize + DeserializeOwned + JsonSchema> Stored for T {}

/// A shape of the kind `test.drift` under a version.
fn subject<T: Stored>(version: (u32, u32)) -> Subject {
    Subject {
        type_name: "Drift",
        kinds: vec!["test.drift"],
        part: Part::Payload,
        version,
        min_reader: version,
        lines: vec![Line { major: version.0, minor: version.1 }],
        schemas: Some(Schemas::of::<T>()),
        samples: Vec::new(),
        again: |_, text| {
            let value: T = serde_json::from_str(text).map_err(|error| error.to_string())?;
            serde_json::to_string(&value).map_err(|error| error.to_string())
        },
    }
}

fn readable_by<T: Stored>(version: (u32, u32), min_reader: (u32, u32)) -> Subject {
    Subject { min_reader, ..subject::<T>(version) }
}

fn lock<T: Stored>(package: &Path, version: (u32, u32)) {
    subject::<T>(version).check(package, Mode::Update).expect("nothing else is locked");
}

/// Holds a shape in all the places where a shape can be.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Nested<T> {
    lines: Vec<T>,
    last: Option<T>,
    step: Step<T>,
    pair: (u8, T),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
enum Step<T> {
    Idle,
    Rows { at: T },
}

/// The changes from one shape to another, told by their paths.
fn changes<Older: Stored, Newer: Stored>(folder: &Path) -> Vec<(String, Class)> {
    lock::<Older>(folder, (1, 0));
    let older = super::Folder::of(folder, "test.drift", Part::Payload).read((1, 0)).unwrap();
    let changes = subject::<Newer>((1, 1)).changes(&older, &Schemas::of::<Newer>());
    changes.into_iter().map(|change| (change.path, change.class)).collect()
}

/// The one change from one shape to another has a class, and needs its bump, wherever it is.
fn assert_change<Older: Stored, Newer: Stored>(path: &str, class: Class) {
    let folder = TempDir::new().unwrap();
    assert_eq!(changes::<Older, Newer>(folder.path()), [(path.to_owned(), class)]);
    assert_bump::<Older, Newer>(class);
    let folder = TempDir::new().unwrap();
    let dot = if path.is_empty() { "" } else { "." };
    let places = ["last", "lines[]", "pair[1]", "step.Rows.at"];
    let wanted: Vec<_> =
        places.iter().map(|place| (format!("{place}{dot}{path}"), class)).collect();
    assert_eq!(changes::<Nested<Older>, Nested<Newer>>(folder.path()), wanted);
    assert_bump::<Nested<Older>, Nested<Newer>>(class);
}

fn assert_bump<Older: Stored, Newer: Stored>(class: Class) {
    let folder = TempDir::new().unwrap();
    lock::<Older>(folder.path(), (1, 0));
    let check = |version| subject::<Newer>(version).check(folder.path(), Mode::Update);
    let same = check((1, 0)).expect_err("the shape changed and its version did not");
    assert!(same.contains(class.as_str()), "{same}");
    let needs = format!("needs a {}", class.bump());
    assert!(same.contains(&needs), "{same}");
    match class.bump() {
        Bump::Minor => check((1, 1)).expect("the next minor is right"),
        Bump::Major => {
            let minor = check((1, 1)).expect_err("the next minor is not enough");
            assert!(minor.contains(class.as_str()), "{minor}");
            assert!(minor.contains("write `version = \"2.0.0\"`"), "{minor}");
        }
    }
    check((2, 0)).expect("the next major may change anything");
}

macro_rules! change {
    ($fact:ident: $class:ident at $path:literal, $older:item => $newer:item) => {
        #[test]
        #[allow(dead_code)]
        fn $fact() {
            mod older {
                use super::*;
                #[derive(Debug, Serialize, Deserialize, JsonSchema)]
                $older
            }
            mod newer {
                use super::*;
                #[derive(Debug, Serialize, Deserialize, JsonSchema)]
                $newer
            }
            assert_change::<older::It, newer::It>($path, Class::$class);
        }
    };
}

fn seven() -> u32 {
    7
}

change!(a_new_field_with_a_default_is_minor: NewField at "memo",
    pub(super) struct It { a: u8 } => pub(super) struct It { a: u8, #[serde(default)] memo: u32 });
change!(a_new_optional_field_is_minor: NewField at "memo",
    pub(super) struct It { a: u8 } => pub(super) struct It { a: u8, memo: Option<String> });
change!(a_new_variant_is_minor: NewVariant at "C",
    pub(super) enum It { A, B { x: u8 } } => pub(super) enum It { A, B { x: u8 }, C });
change!(a_new_variant_with_a_tag_is_minor: NewVariant at "C",
    #[serde(tag = "t")] pub(super) enum It { A, B { x: u8 } } =>
    #[serde(tag = "t")] pub(super) enum It { A, B { x: u8 }, C });
change!(a_widened_integer_is_minor: Widened at "a",
    pub(super) struct It { a: u8 } => pub(super) struct It { a: i64 });
change!(a_longer_float_is_minor: Widened at "a",
    pub(super) struct It { a: f32 } => pub(super) struct It { a: f64 });
change!(required_to_optional_is_minor: RequiredToOptional at "a",
    pub(super) struct It { a: u8 } => pub(super) struct It { a: Option<u8> });
change!(required_to_a_default_is_minor: RequiredToOptional at "a",
    pub(super) struct It { a: u32 } => pub(super) struct It { #[serde(default = "seven")] a: u32 });
change!(a_rename_with_an_alias_is_minor: RenamedWithAlias at "b",
    pub(super) struct It { a: u8 } => pub(super) struct It { #[serde(alias = "a")] b: u8 });
change!(a_dropped_field_is_minor: DroppedField at "b",
    pub(super) struct It { a: u8, b: String } => pub(super) struct It { a: u8 });
change!(denying_unknown_fields_is_minor: UnknownFields at "",
    pub(super) struct It { a: u8 } => #[serde(deny_unknown_fields)] pub(super) struct It { a: u8 });
change!(a_new_required_field_is_major: NewRequiredField at "b",
    pub(super) struct It { a: u8 } => pub(super) struct It { a: u8, b: String });
change!(a_rename_without_an_alias_is_major: Renamed at "b",
    pub(super) struct It { a: u8 } => pub(super) struct It { b: u8 });
change!(a_rename_of_an_optional_field_is_major: Renamed at "b",
    pub(super) struct It { a: Option<u8> } => pub(super) struct It { b: Option<u8> });
change!(a_narrowed_integer_is_major: Narrowed at "a",
    pub(super) struct It { a: u64 } => pub(super) struct It { a: u32 });
change!(another_sign_is_major: Narrowed at "a",
    pub(super) struct It { a: i32 } => pub(super) struct It { a: u32 });
change!(optional_to_required_is_major: OptionalToRequired at "a",
    pub(super) struct It { a: Option<u8> } => pub(super) struct It { a: u8 });
change!(a_default_to_required_is_major: OptionalToRequired at "a",
    pub(super) struct It { #[serde(default)] a: u8 } => pub(super) struct It { a: u8 });
change!(a_removed_variant_is_major: RemovedVariant at "B",
    pub(super) enum It { A, B } => pub(super) enum It { A });
change!(a_dropped_field_that_is_then_denied_is_major: DroppedFieldDenied at "b",
    #[serde(deny_unknown_fields)] pub(super) struct It { a: u8, b: String } =>
    #[serde(deny_unknown_fields)] pub(super) struct It { a: u8 });
change!(a_changed_tag_is_major: Representation at "",
    #[serde(tag = "t")] pub(super) enum It { A, B { x: u8 } } =>
    #[serde(tag = "kind")] pub(super) enum It { A, B { x: u8 } });
change!(a_changed_representation_is_major: Representation at "",
    pub(super) enum It { A, B { x: u8 } } => #[serde(tag = "t")] pub(super) enum It { A, B { x: u8 } });
change!(another_type_is_major: Representation at "a",
    pub(super) struct It { a: u8 } => pub(super) struct It { a: String });
change!(a_field_within_an_untagged_variant_is_major: Representation at "000",
    #[serde(untagged)] pub(super) enum It { A { x: u8 }, B(String) } =>
    #[serde(untagged)] pub(super) enum It { A { x: u8, y: Option<u8> }, B(String) });
change!(another_length_of_a_tuple_is_major: Representation at "",
    pub(super) struct It(u8, u8); => pub(super) struct It(u8, u8, u8););
change!(a_changed_default_is_major: ChangedDefault at "a",
    pub(super) struct It { #[serde(default)] a: u32 } =>
    pub(super) struct It { #[serde(default = "seven")] a: u32 });

#[test]
fn a_field_of_a_tagged_variant_is_told_by_the_name_of_the_variant() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "t")]
    enum Older {
        A,
        B { x: u8 },
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "t")]
    enum Newer {
        A,
        B { x: u8, y: Option<u8> },
    }
    let folder = TempDir::new().unwrap();
    let wanted = [("B.y".to_owned(), Class::NewField)];
    assert_eq!(changes::<Older, Newer>(folder.path()), wanted);
}

#[test]
fn docs_titles_and_the_order_of_fields_and_variants_are_no_change() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    enum Older {
        A,
        B { x: u8, y: u8 },
        C,
    }
    /// A doc.
    #[derive(Serialize, Deserialize, JsonSchema)]
    enum Newer {
        C,
        B {
            y: u8,
            /// A doc.
            x: u8,
        },
        /// A doc.
        A,
    }
    let folder = TempDir::new().unwrap();
    assert_eq!(changes::<Older, Newer>(folder.path()), []);
}

mod older {
    use super::{Deserialize, JsonSchema, Serialize};

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Tree {
        name: String,
        twigs: Vec<Tree>,
        leaf: Leaf,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Leaf {
        Number(u8),
        Leaves(Vec<Leaf>),
    }
}

mod newer {
    use super::{Deserialize, JsonSchema, Serialize};

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Tree {
        name: String,
        twigs: Vec<Tree>,
        leaf: Leaf,
        age: Option<u8>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Leaf {
        Number(u8),
        Leaves(Vec<Leaf>),
    }
}

#[test]
fn a_type_that_holds_itself_is_compared_and_ends() {
    let folder = TempDir::new().unwrap();
    assert_eq!(changes::<older::Tree, older::Tree>(folder.path()), []);
    let folder = TempDir::new().unwrap();
    let told = changes::<older::Tree, newer::Tree>(folder.path());
    assert!(told.contains(&("age".to_owned(), Class::NewField)), "{told:?}");
    assert!(told.iter().all(|(_, class)| *class == Class::NewField), "{told:?}");
}

#[test]
fn what_only_the_writer_changed_is_seen() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Older {
        a: u8,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Newer {
        #[serde(rename(serialize = "b"))]
        a: u8,
    }
    let changes = diff(&Schemas::of::<Older>(), &Schemas::of::<Newer>(), &|_, _, _| false);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((changes[0].path.as_str(), changes[0].class), ("b", Class::Renamed));
}
