//! The canonical form of a schema: what two builds of one shape agree on, whoever prints it.
//!
//! Sub-schemas stand where they are used; only a type that holds itself keeps a reference. Titles,
//! docs and everything else that decodes nothing is dropped, and what has no order is sorted.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// What a build writes and what it reads of one shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Schemas {
    /// The schema of what `Serialize` writes.
    pub writes: Value,
    /// The schema of what `Deserialize` reads.
    pub reads: Value,
}

impl Schemas {
    /// The schemas of a type, in canonical form.
    pub fn of<T: JsonSchema>() -> Self {
        let writes = schema::<T>(Contract::Serialize);
        let reads = schema::<T>(Contract::Deserialize);
        Self { writes: canonical(writes), reads: canonical(reads) }
    }
}

fn schema<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = contract;
    });
    Schema::into(settings.into_generator().into_root_schema_for::<T>())
}

/// What says nothing about how a value is read or written.
const ANNOTATIONS: [&str; 8] = [
    "$schema",
    "$comment",
    "title",
    "description",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// Keywords whose value maps names of the user's to schemas.
const NAMED: [&str; 3] = ["properties", "patternProperties", "$defs"];
/// Keywords whose list has no order.
const UNORDERED: [&str; 4] = ["required", "type", "enum", "oneOf"];

/// Brings a schema into canonical form. Doing it again changes nothing.
pub fn canonical(schema: Value) -> Value {
    let Value::Object(keywords) = schema else { return schema };
    let mut sorted = Map::new();
    for (keyword, value) in in_order(keywords) {
        if ANNOTATIONS.contains(&keyword.as_str()) {
            continue;
        }
        let value = match value {
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => Value::Object(
                in_order(named).map(|(name, schema)| (name, canonical(schema))).collect(),
            ),
            // A default and a constant are values of the user's, not schemas.
            value if keyword == "default" || keyword == "const" => ordered(value),
            Value::Array(list) => {
                let mut list: Vec<Value> = list.into_iter().map(canonical).collect();
                if UNORDERED.contains(&keyword.as_str()) {
                    list.sort_by_cached_key(Value::to_string);
                }
                Value::Array(list)
            }
            value => canonical(value),
        };
        sorted.insert(keyword, value);
    }
    Value::Object(sorted)
}

/// A value with the names of its objects in order.
fn ordered(value: Value) -> Value {
    match value {
        Value::Object(names) => {
            Value::Object(in_order(names).map(|(name, value)| (name, ordered(value))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(ordered).collect()),
        value => value,
    }
}

/// By name also where a crate of the application makes `serde_json` keep the order of insertion.
fn in_order(map: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    let mut entries: Vec<_> = map.into_iter().collect();
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    entries.into_iter()
}
