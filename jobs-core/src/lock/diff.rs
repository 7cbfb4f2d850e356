//! What changed between two schemas of a shape, and which version the change needs.
//!
//! 1. Every difference is a change. What is not understood counts as another representation, so
//!    nothing passes unseen.
//! 2. The older side is what may be stored, the newer side what reads it: a change is minor where
//!    the newer code reads every text of the older, and major otherwise.
//!
//! Pure: schemas in canonical form go in, changes come out.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde_json::Value;

use super::schema::Schemas;
use super::shape::{Choice, Field, Form, Record, Rest, Shape, Style, resolved, shape, without_tag};

/// One change of a shape.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The field, such as `lines[].price`, `Rows.last_id` within a variant, or empty for the whole.
    pub path: String,
    /// What happened to it.
    pub class: Class,
    /// Whether the older reader fails at fields that it does not know, at this place.
    pub older_denies_unknown: bool,
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A field that older texts may lack.
    NewField,
    /// A variant that older texts never hold.
    NewVariant,
    /// A type that holds all that it held before.
    Widened,
    /// A field that may now be absent or null.
    RequiredToOptional,
    /// Another name, and the old one is still read.
    RenamedWithAlias,
    /// A field that is no longer read.
    DroppedField,
    /// Unknown fields are an error now, or no longer.
    UnknownFields,
    /// A field that older texts lack and the reader needs.
    NewRequiredField,
    /// Another name, and the old one is not read.
    Renamed,
    /// A type that no longer holds all that it held before.
    Narrowed,
    /// A field that may no longer be absent or null.
    OptionalToRequired,
    /// A variant that older texts may hold is gone.
    RemovedVariant,
    /// A field is gone and the reader refuses what it does not know.
    DroppedFieldDenied,
    /// Another tag, type or form.
    Representation,
    /// An absent field now means something else.
    ChangedDefault,
}

/// The version that a change needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bump {
    /// The next minor: this code still reads every older text.
    Minor,
    /// The next major: it does not, or would read another meaning.
    Major,
}

impl Class {
    /// The version that it needs.
    pub const fn bump(self) -> Bump {
        match self {
            Self::NewField
            | Self::NewVariant
            | Self::Widened
            | Self::RequiredToOptional
            | Self::RenamedWithAlias
            | Self::DroppedField
            | Self::UnknownFields => Bump::Minor,
            Self::NewRequiredField
            | Self::Renamed
            | Self::Narrowed
            | Self::OptionalToRequired
            | Self::RemovedVariant
            | Self::DroppedFieldDenied
            | Self::Representation
            | Self::ChangedDefault => Bump::Major,
        }
    }

    /// The change in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NewField => "new field with a default",
            Self::NewVariant => "new variant",
            Self::Widened => "widened type",
            Self::RequiredToOptional => "required to optional",
            Self::RenamedWithAlias => "rename with an alias",
            Self::DroppedField => "dropped field",
            Self::UnknownFields => "other treatment of unknown fields",
            Self::NewRequiredField => "new required field",
            Self::Renamed => "rename without an alias",
            Self::Narrowed => "narrowed type",
            Self::OptionalToRequired => "optional to required",
            Self::RemovedVariant => "removed variant",
            Self::DroppedFieldDenied => "dropped field, and unknown fields are denied",
            Self::Representation => "changed tag, type or representation",
            Self::ChangedDefault => "changed default",
        }
    }
}

impl Change {
    /// Whether a reader of the older shape reads the newer one without losing what matters to it:
    /// a field with a default was added where unknown fields are ignored.
    pub const fn is_readable_by_older(&self) -> bool {
        matches!(self.class, Class::NewField) && !self.older_denies_unknown
    }
}

/// Whether the newer code reads a field under its old name: of the record at a path, from, to.
pub type IsAlias<'a> = dyn Fn(&str, &str, &str) -> bool + 'a;

/// All changes from the older shape to the newer one, each once, in order of path.
///
/// Schemas say nothing of serde's aliases, so `is_alias` is asked about each rename.
pub fn diff(older: &Schemas, newer: &Schemas, is_alias: &IsAlias<'_>) -> Vec<Change> {
    let reads = Walk::new(&older.reads, &newer.reads, Side::Reads, is_alias).changes();
    let writes = Walk::new(&older.writes, &newer.writes, Side::Writes, is_alias).changes();
    // What is written differs by itself only where what is read did not tell of it already.
    let is_told = |path: &str| reads.iter().any(|change| change.path == path);
    let only_written = writes.into_iter().filter(|change| !is_told(&change.path));
    let mut all: BTreeSet<Change> = only_written.collect();
    all.extend(reads);
    all.into_iter().collect()
}

/// Which half of a shape is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Reads,
    /// Whether a field is always written, and its default, bind no reader.
    Writes,
}

struct Walk<'a> {
    older: &'a Value,
    newer: &'a Value,
    side: Side,
    is_alias: &'a IsAlias<'a>,
    /// The pairs of schemas that are being compared: a type that holds itself comes back.
    open: HashSet<(*const Value, *const Value)>,
    changes: Vec<Change>,
}

impl<'a> Walk<'a> {
    fn new(older: &'a Value, newer: &'a Value, side: Side, is_alias: &'a IsAlias<'a>) -> Self {
        Self { older, newer, side, is_alias, open: HashSet::new(), changes: Vec::new() }
    }

    fn changes(mut self) -> Vec<Change> {
        self.compare(self.older, self.newer, "");
        self.changes
    }

    fn add(&mut self, path: &str, class: Class) {
        self.changes.push(Change { path: path.to_owned(), class, older_denies_unknown: false });
    }

    fn compare(&mut self, older: &'a Value, newer: &'a Value, path: &str) {
        let pair = (resolved(older, self.older), resolved(newer, self.newer));
        if !self.open.insert((std::ptr::from_ref(pair.0), std::ptr::from_ref(pair.1))) {
            return;
        }
        let (older, newer) = (shape(older, self.older), shape(newer, self.newer));
        match (older.is_nullable, newer.is_nullable) {
            (false, true) => self.add(path, Class::RequiredToOptional),
            (true, false) => self.add(path, Class::OptionalToRequired),
            (true, true) | (false, false) => {}
        }
        self.forms(older, newer, path);
    }

    fn forms(&mut self, older: Shape<'a>, newer: Shape<'a>, path: &str) {
        match (older.form, newer.form) {
            (Form::Anything, Form::Anything) => {}
            (_, Form::Anything) => self.add(path, Class::Widened),
            (Form::Anything, _) => self.add(path, Class::Narrowed),
            (
                Form::Integer { least, most },
                Form::Integer { least: newer_least, most: newer_most },
            ) => {
                if newer_least > least || newer_most < most {
                    self.add(path, Class::Narrowed);
                } else if newer_least < least || newer_most > most {
                    self.add(path, Class::Widened);
                }
            }
            (Form::List { item, rest }, Form::List { item: newer_item, rest: newer_rest }) => {
                self.rests(&rest, &newer_rest, path);
                self.compare(item, newer_item, &format!("{path}[]"));
            }
            (Form::Tuple(items), Form::Tuple(newer_items)) => {
                if items.len() != newer_items.len() {
                    return self.add(path, Class::Representation);
                }
                for (n, (item, newer_item)) in items.into_iter().zip(newer_items).enumerate() {
                    self.compare(item, newer_item, &format!("{path}[{n}]"));
                }
            }
            (Form::Map { value, rest }, Form::Map { value: newer_value, rest: newer_rest }) => {
                self.rests(&rest, &newer_rest, path);
                self.compare(value, newer_value, &format!("{path}{{}}"));
            }
            (Form::Record(older), Form::Record(newer)) => self.records(&older, &newer, path),
            (Form::Choice(older), Form::Choice(newer)) => self.choices(&older, &newer, path),
            (Form::Other(older), Form::Other(newer)) => self.rests(&older, &newer, path),
            _ => self.add(path, Class::Representation),
        }
    }

    fn rests(&mut self, older: &Rest<'a>, newer: &Rest<'a>, path: &str) {
        if older == newer {
            return;
        }
        let format = |rest: &Rest<'a>| rest.get("format").and_then(|it| it.as_str());
        let class = match (format(older), format(newer)) {
            (Some("float"), Some("double")) => Class::Widened,
            (Some("double"), Some("float")) => Class::Narrowed,
            _ => Class::Representation,
        };
        self.add(path, class);
    }

    fn records(&mut self, older: &Record<'a>, newer: &Record<'a>, path: &str) {
        self.rests(&older.rest, &newer.rest, path);
        if older.denies_unknown != newer.denies_unknown {
            self.add(path, Class::UnknownFields);
        }
        let mut dropped: Vec<&str> =
            older.fields.keys().filter(|name| !newer.fields.contains_key(*name)).copied().collect();
        for (name, field) in &newer.fields {
            let at = join(path, name);
            match older.fields.get(name) {
                Some(older) => self.fields(*older, *field, &at),
                None => self.added(older, *field, name, path, &mut dropped),
            }
        }
        for name in dropped {
            let class =
                if newer.denies_unknown { Class::DroppedFieldDenied } else { Class::DroppedField };
            self.add(&join(path, name), class);
        }
    }

    /// A field that the older record lacks: new, or one of the dropped ones under another name.
    fn added(
        &mut self,
        older: &Record<'a>,
        field: Field<'a>,
        name: &str,
        path: &str,
        dropped: &mut Vec<&'a str>,
    ) {
        let at = join(path, name);
        if let Some(n) = dropped.iter().position(|from| (self.is_alias)(path, from, name)) {
            let from = dropped.remove(n);
            self.add(&at, Class::RenamedWithAlias);
            return self.fields(older.fields[from], field, &at);
        }
        // The one field that left and the one of the same type that came are the same one.
        if let [from] = dropped[..]
            && self.is_same(older.fields[from].schema, field.schema)
        {
            dropped.clear();
            return self.add(&at, Class::Renamed);
        }
        let is_needed = field.is_required && self.side == Side::Reads;
        let class = if is_needed { Class::NewRequiredField } else { Class::NewField };
        let older_denies_unknown = older.denies_unknown;
        self.changes.push(Change { path: at, class, older_denies_unknown });
    }

    fn is_same(&self, older: &'a Value, newer: &'a Value) -> bool {
        let mut walk = Walk::new(self.older, self.newer, self.side, self.is_alias);
        walk.open.clone_from(&self.open);
        walk.compare(older, newer, "");
        walk.changes.is_empty()
    }

    fn fields(&mut self, older: Field<'a>, newer: Field<'a>, path: &str) {
        let before = self.changes.len();
        self.compare(older.schema, newer.schema, path);
        if self.side == Side::Writes {
            return;
        }
        // `Option` makes a field optional and nullable at once, which is one change.
        let is_told = self.changes[before..].iter().any(|change| change.path == path);
        match (older.is_required, newer.is_required) {
            (true, false) if !is_told => self.add(path, Class::RequiredToOptional),
            (false, true) if !is_told => self.add(path, Class::OptionalToRequired),
            (false, false) if older.default != newer.default => {
                self.add(path, Class::ChangedDefault);
            }
            _ => {}
        }
    }

    fn choices(&mut self, older: &Choice<'a>, newer: &Choice<'a>, path: &str) {
        if older.style != newer.style {
            return self.add(path, Class::Representation);
        }
        for (name, content) in &older.variants {
            let at = join(path, name);
            match (content, newer.variants.get(name)) {
                (_, None) => self.add(&at, Class::RemovedVariant),
                (None, Some(None)) => {}
                (Some(content), Some(Some(newer_content))) => {
                    self.variants(older.style, content, newer_content, &at);
                }
                (None, Some(Some(_))) | (Some(_), Some(None)) => {
                    self.add(&at, Class::Representation);
                }
            }
        }
        for name in newer.variants.keys().filter(|name| !older.variants.contains_key(*name)) {
            self.add(&join(path, name), Class::NewVariant);
        }
    }

    fn variants(&mut self, style: Style<'a>, older: &'a Value, newer: &'a Value, path: &str) {
        match style {
            Style::External => self.compare(older, newer, path),
            // Which variant a text is may change with any of them.
            Style::Untagged => {
                if !self.is_same(older, newer) {
                    self.add(path, Class::Representation);
                }
            }
            Style::Tagged(tag) => {
                match (shape(older, self.older).form, shape(newer, self.newer).form) {
                    (Form::Record(older), Form::Record(newer)) => {
                        let (older, newer) = (without_tag(older, tag), without_tag(newer, tag));
                        self.records(&older, &newer, path);
                    }
                    _ => self.compare(older, newer, path),
                }
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str("the shape itself")?,
            path => write!(f, "`{path}`")?,
        }
        write!(f, ": {}, which needs a {}", self.class.as_str(), self.class.bump())
    }
}

impl fmt::Display for Bump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minor => "minor",
            Self::Major => "major",
        })
    }
}
