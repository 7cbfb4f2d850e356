//! A schema in the words of serde: records, choices, lists, and what is left.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// One schema, and whether `null` is a value of it.
#[derive(Debug)]
pub(super) struct Shape<'a> {
    pub(super) form: Form<'a>,
    pub(super) is_nullable: bool,
}

#[derive(Debug)]
pub(super) enum Form<'a> {
    /// Any JSON at all.
    Anything,
    Integer {
        least: i128,
        most: i128,
    },
    List {
        item: &'a Value,
        rest: Rest<'a>,
    },
    Tuple(Vec<&'a Value>),
    Map {
        value: &'a Value,
        rest: Rest<'a>,
    },
    Record(Record<'a>),
    Choice(Choice<'a>),
    /// Everything else, compared as it stands: texts, numbers, booleans, unit.
    Other(Rest<'a>),
}

/// The keywords of a schema that are not told apart any further.
pub(super) type Rest<'a> = BTreeMap<&'a str, &'a Value>;

/// A struct with named fields, or the fields of a variant.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) fields: BTreeMap<&'a str, Field<'a>>,
    /// Whether an unknown field is an error.
    pub(super) denies_unknown: bool,
    pub(super) rest: Rest<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) schema: &'a Value,
    pub(super) is_required: bool,
    /// The default, where it is another than `null`.
    pub(super) default: Option<&'a Value>,
}

/// An enum.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) style: Style<'a>,
    /// What each variant holds, by its name; `None`: the name is all of it.
    pub(super) variants: BTreeMap<String, Option<&'a Value>>,
}

/// How an enum says which variant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style<'a> {
    /// By the one field that it has, or by being a plain text: serde's default.
    External,
    /// By a field of this name.
    Tagged(&'a str),
    /// By being readable: the first one that fits. The variants are named by their number.
    Untagged,
}

/// The tag within a variant of a [`Style::Tagged`] choice: no field of the user's.
pub(super) fn without_tag<'a>(mut record: Record<'a>, tag: &str) -> Record<'a> {
    record.fields.remove(tag);
    record
}

/// Reads a schema; references are looked up in `root`.
pub(super) fn shape<'a>(schema: &'a Value, root: &'a Value) -> Shape<'a> {
    let Value::Object(keywords) = resolved(schema, root) else {
        let form = match schema {
            Value::Bool(true) => Form::Anything,
            _ => Form::Other(Rest::from([("", schema)])),
        };
        return Shape { form, is_nullable: false };
    };
    if let Some(inner) = nullable(keywords) {
        return Shape { is_nullable: true, ..shape(inner, root) };
    }
    let types = types(keywords);
    let is_unit = types == ["null"];
    let is_nullable = types.contains(&"null") && !is_unit;
    let kind = if is_unit {
        "null"
    } else {
        types.iter().find(|it| **it != "null").copied().unwrap_or("")
    };
    let form = match kind {
        _ if keywords.contains_key("oneOf") && !keywords.contains_key("properties") => {
            choice(list(keywords, "oneOf"), root).map(Form::Choice)
        }
        _ if keywords.contains_key("anyOf") => Some(untagged(list(keywords, "anyOf"))),
        _ if keywords.contains_key("enum") || keywords.contains_key("const") => {
            choice(std::slice::from_ref(resolved(schema, root)), root).map(Form::Choice)
        }
        "integer" => Some(integer(keywords)),
        "array" => Some(array(keywords)),
        "object" => Some(object(keywords)),
        _ => None,
    };
    let form = form.unwrap_or_else(|| Form::Other(rest(keywords, &[])));
    Shape { form, is_nullable }
}

/// The schema that a chain of references leads to.
pub(super) fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return schema };
    if reference == "#" {
        return root;
    }
    let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
    // A reference to a reference would be a type that is nothing but itself.
    target.unwrap_or(schema)
}

/// `anyOf: [schema, null]`, which is what an `Option` is.
fn nullable(keywords: &Map<String, Value>) -> Option<&Value> {
    let [first, second] = list(keywords, "anyOf") else { return None };
    let is_null = |schema: &Value| schema.get("type").is_some_and(|it| it == "null");
    match (is_null(first), is_null(second)) {
        (false, true) => Some(first),
        (true, false) => Some(second),
        _ => None,
    }
}

fn types(keywords: &Map<String, Value>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn list<'a>(keywords: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    keywords.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// All keywords but those that were understood.
fn rest<'a>(keywords: &'a Map<String, Value>, understood: &[&str]) -> Rest<'a> {
    let known = |name: &str| understood.contains(&name) || ["default", "$defs"].contains(&name);
    let left = keywords.iter().filter(|(name, _)| !known(name));
    left.map(|(name, value)| (name.as_str(), value)).collect()
}

fn integer(keywords: &Map<String, Value>) -> Form<'_> {
    let bound = |name: &str| {
        let value = keywords.get(name)?;
        value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
    };
    let format = keywords.get("format").and_then(Value::as_str).unwrap_or("");
    let (least, most) = match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int" | "int64" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint" | "uint64" => (0, u64::MAX.into()),
        _ => (i128::MIN, i128::MAX),
    };
    let least = bound("minimum").map_or(least, |it| it.max(least));
    let most = bound("maximum").map_or(most, |it| it.min(most));
    Form::Integer { least, most }
}

fn array(keywords: &Map<String, Value>) -> Form<'_> {
    if keywords.contains_key("prefixItems") {
        return Form::Tuple(list(keywords, "prefixItems").iter().collect());
    }
    let item = keywords.get("items").unwrap_or(&Value::Bool(true));
    Form::List { item, rest: rest(keywords, &["type", "items"]) }
}

fn object(keywords: &Map<String, Value>) -> Form<'_> {
    match keywords.get("additionalProperties") {
        Some(value) if !value.is_boolean() && !keywords.contains_key("properties") => {
            Form::Map { value, rest: rest(keywords, &["type", "additionalProperties"]) }
        }
        _ => Form::Record(record(keywords)),
    }
}

fn record(keywords: &Map<String, Value>) -> Record<'_> {
    let required: Vec<&str> = list(keywords, "required").iter().filter_map(Value::as_str).collect();
    let named = keywords.get("properties").and_then(Value::as_object);
    let fields = named.into_iter().flatten().map(|(name, schema)| {
        let default = schema.get("default").filter(|default| !default.is_null());
        let is_required = required.contains(&name.as_str());
        (name.as_str(), Field { schema, is_required, default })
    });
    let denies = |name: &str| keywords.get(name) == Some(&Value::Bool(false));
    let understood =
        ["type", "properties", "required", "additionalProperties", "unevaluatedProperties"];
    let understood = match keywords.get("additionalProperties") {
        // A flattened map beside the fields.
        Some(Value::Object(_)) => &understood[..3],
        _ => &understood[..],
    };
    Record {
        fields: fields.collect(),
        denies_unknown: denies("additionalProperties") || denies("unevaluatedProperties"),
        rest: rest(keywords, understood),
    }
}

/// The variants of an enum that says by a tag or a name which one it is.
fn choice<'a>(alternatives: &'a [Value], root: &'a Value) -> Option<Choice<'a>> {
    let alternatives: Vec<&Value> = alternatives.iter().map(|it| resolved(it, root)).collect();
    let tag = tag(&alternatives);
    let mut variants = BTreeMap::new();
    for alternative in alternatives {
        if let Some(tag) = tag {
            let name = alternative.get("properties")?.get(tag)?.get("const")?;
            variants.insert(plain(name), Some(alternative));
        } else if let Some(name) = alternative.get("const") {
            variants.insert(plain(name), None);
        } else if let Some(names) = alternative.get("enum").and_then(Value::as_array) {
            let names = names.iter().filter(|name| !name.is_null());
            variants.extend(names.map(|name| (plain(name), None)));
        } else {
            let fields = alternative.get("properties")?.as_object()?;
            let (name, content) = fields.iter().next().filter(|_| fields.len() == 1)?;
            variants.insert(name.clone(), Some(content));
        }
    }
    let style = tag.map_or(Style::External, Style::Tagged);
    Some(Choice { style, variants })
}

/// The field that says which variant a record is: every one has it, with one value.
fn tag<'a>(alternatives: &[&'a Value]) -> Option<&'a str> {
    let fields = alternatives.first()?.get("properties")?.as_object()?;
    let has_constant = |schema: &Value, name: &str| {
        schema.get("properties").and_then(|fields| fields.get(name)?.get("const")).is_some()
    };
    let mut names = fields.keys().map(String::as_str);
    names.find(|name| alternatives.iter().all(|schema| has_constant(schema, name)))
}

fn untagged(alternatives: &[Value]) -> Form<'_> {
    let numbered = alternatives.iter().enumerate();
    let variants = numbered.map(|(n, schema)| (format!("{n:03}"), Some(schema))).collect();
    Form::Choice(Choice { style: Style::Untagged, variants })
}

fn plain(name: &Value) -> String {
    name.as_str().map_or_else(|| name.to_string(), str::to_owned)
}
