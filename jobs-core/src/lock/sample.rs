//! Values of a shape, made from its schema.
//!
//! A made value is only a proposal: whoever asks decodes it, and drops what does not decode.

use serde_json::{Map, Value, json};

use super::shape::{Choice, Form, Record, Style, resolved, shape};

/// How deep a value of a type that holds itself may go.
const DEEPEST: usize = 6;

/// Values of a schema: one with everything in it for each variant of an enum, one with as little as
/// may be.
pub(super) fn samples(schema: &Value) -> Vec<Value> {
    let make = |fill, variant| Make { root: schema, fill, variant }.value(schema, 0);
    let full = (0..variants(schema)).filter_map(|variant| make(Fill::Full, variant));
    let mut made: Vec<Value> = full.chain(make(Fill::Bare, 0)).collect();
    let mut seen = Vec::new();
    made.retain(|value| {
        let is_new = !seen.contains(value);
        seen.push(value.clone());
        is_new
    });
    made
}

/// Whether what may be absent is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Full,
    Bare,
}

struct Make<'a> {
    root: &'a Value,
    fill: Fill,
    /// Which variant each enum of the value has, counted on where there are fewer.
    variant: usize,
}

/// How many variants the widest enum of a schema has, the schema itself or a field of it.
fn variants(schema: &Value) -> usize {
    let of = |schema| match shape(schema, schema).form {
        Form::Choice(choice) => choice.variants.len(),
        _ => 1,
    };
    match shape(schema, schema).form {
        Form::Record(record) => record.fields.values().map(|field| of(field.schema)).max(),
        _ => Some(of(schema)),
    }
    .unwrap_or(1)
    .clamp(1, 64)
}

impl Make<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Option<Value> {
        let shape = shape(schema, self.root);
        if shape.is_nullable && (self.fill == Fill::Bare || depth >= DEEPEST) {
            return Some(Value::Null);
        }
        if depth > 2 * DEEPEST {
            return None;
        }
        match shape.form {
            Form::Anything => Some(json!({ "any": 1 })),
            Form::Integer { least, most } => {
                let number = 7.clamp(least, most);
                i64::try_from(number)
                    .map(Value::from)
                    .or(u64::try_from(number).map(Value::from))
                    .ok()
            }
            Form::List { item, rest } => {
                let bound = |name| rest.get(name).and_then(|it| it.as_u64()).unwrap_or(0);
                let wanted = u64::from(self.fill == Fill::Full && depth < DEEPEST);
                let count = bound("minItems").max(wanted);
                (0..count).map(|_| self.value(item, depth + 1)).collect()
            }
            Form::Tuple(items) => {
                items.into_iter().map(|item| self.value(item, depth + 1)).collect()
            }
            Form::Map { value, .. } => {
                let mut map = Map::new();
                if self.fill == Fill::Full && depth < DEEPEST {
                    map.insert("key".to_owned(), self.value(value, depth + 1)?);
                }
                Some(Value::Object(map))
            }
            Form::Record(record) => self.record(&record, depth),
            Form::Choice(choice) => self.choice(&choice, depth),
            Form::Other(_) => other(resolved(schema, self.root)),
        }
    }

    fn record(&self, record: &Record<'_>, depth: usize) -> Option<Value> {
        let mut map = Map::new();
        for (name, field) in &record.fields {
            if field.is_required || self.fill == Fill::Full {
                map.insert((*name).to_owned(), self.value(field.schema, depth + 1)?);
            }
        }
        Some(Value::Object(map))
    }

    fn choice(&self, choice: &Choice<'_>, depth: usize) -> Option<Value> {
        let variants: Vec<_> = choice.variants.iter().collect();
        // Deep down a variant that holds nothing ends a type that holds itself.
        let (name, content) = if depth >= DEEPEST {
            *variants.iter().find(|(_, content)| content.is_none()).or(variants.first())?
        } else {
            *variants.get(self.variant % variants.len().max(1))?
        };
        match (choice.style, content) {
            (Style::External, None) => Some(Value::String(name.clone())),
            (Style::External, Some(content)) => {
                Some(json!({ name.as_str(): self.value(content, depth + 1)? }))
            }
            (Style::Tagged(_) | Style::Untagged, content) => {
                self.value(content.as_ref()?, depth + 1)
            }
        }
    }
}

fn other(schema: &Value) -> Option<Value> {
    let keyword = |name: &str| schema.get(name).and_then(Value::as_str);
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let types = schema.get("type")?;
    let is = |name: &str| {
        types == name || types.as_array().is_some_and(|types| types.iter().any(|it| it == name))
    };
    if is("boolean") {
        Some(Value::Bool(true))
    } else if is("number") {
        Some(json!(1.5))
    } else if is("string") {
        Some(Value::String(match keyword("format") {
            Some("date-time") => "2026-01-02T03:04:05Z".to_owned(),
            Some("date") => "2026-01-02".to_owned(),
            Some("time") => "03:04:05".to_owned(),
            Some("duration") => "PT5M".to_owned(),
            Some("uuid") => "0198c5c6-7d00-7000-8000-000000000001".to_owned(),
            Some("uri") => "https://example.com/".to_owned(),
            Some("email") => "ann@example.com".to_owned(),
            Some("ip" | "ipv4") => "192.0.2.1".to_owned(),
            Some("ipv6") => "2001:db8::1".to_owned(),
            _ => text(bound("minLength"), bound("maxLength")),
        }))
    } else if is("null") {
        Some(Value::Null)
    } else {
        None
    }
}

fn text(least: Option<u64>, most: Option<u64>) -> String {
    let length = 4.clamp(least.unwrap_or(0), most.unwrap_or(u64::MAX).max(least.unwrap_or(0)));
    "text".chars().cycle().take(usize::try_from(length).unwrap_or(4)).collect()
}
