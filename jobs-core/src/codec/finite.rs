//! A serialiser that writes nothing and stops at the first number that JSON can't keep, or where a value is
//! nested more deeply than its reader follows.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// As deep as `serde_json` reads: it gives up at the 128th bracket, so that no text overflows a stack.
pub(super) const MOST_LEVELS: u8 = 127;

/// What a reader would not get back.
pub(super) enum Unkept {
    /// A NaN or an infinity, at this path.
    NotFinite(String),
    /// More than [`MOST_LEVELS`].
    TooDeep,
}

/// Looks for what a reader would not get back.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), Unkept> {
    let mut path = Vec::new();
    match value.serialize(Walk { path: &mut path, levels: 0 }) {
        Err(Stop::NotFinite) => Err(Unkept::NotFinite(render(&path))),
        Err(Stop::TooDeep) => Err(Unkept::TooDeep),
        // The value's own failure is met, and reported, when it is encoded.
        Ok(()) | Err(Stop::Other) => Ok(()),
    }
}

enum Step {
    Field(&'static str),
    Key(String),
    Index(usize),
}

fn render(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        let name = match step {
            Step::Index(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
                continue;
            }
            Step::Field(name) => *name,
            Step::Key(key) => key.as_str(),
        };
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(name);
    }
    text
}

#[derive(Debug)]
enum Stop {
    NotFinite,
    TooDeep,
    Other,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFinite => "a number is not finite",
            Self::TooDeep => "the value is nested too deeply",
            Self::Other => "the value does not serialise",
        })
    }
}

impl std::error::Error for Stop {}

impl serde::ser::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }
}

struct Walk<'a> {
    path: &'a mut Vec<Step>,
    /// How many brackets are open.
    levels: u8,
}

/// Walks the parts of a compound value, keeping the path to the one in hand.
struct Parts<'a> {
    path: &'a mut Vec<Step>,
    levels: u8,
    index: usize,
    key: String,
}

impl Parts<'_> {
    fn part<T: Serialize + ?Sized>(&mut self, step: Step, value: &T) -> Result<(), Stop> {
        self.path.push(step);
        value.serialize(Walk { path: self.path, levels: self.levels })?;
        self.path.pop();
        Ok(())
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.index += 1;
        self.part(Step::Index(self.index - 1), value)
    }
}

impl<'a> Walk<'a> {
    /// The parts of a value that opens so many brackets.
    fn parts(self, opened: u8) -> Result<Parts<'a>, Stop> {
        let levels = self.levels.saturating_add(opened);
        if levels > MOST_LEVELS {
            return Err(Stop::TooDeep);
        }
        Ok(Parts { path: self.path, levels, index: 0, key: String::new() })
    }
}

macro_rules! fine {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> Result<(), Stop> { Ok(()) })*
    };
}

impl<'a> Serializer for Walk<'a> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    fine! {
        serialize_bool(bool)
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_u128(u128)
        serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_unit_struct(&'static str)
    }

    fn serialize_f32(self, number: f32) -> Result<(), Stop> {
        if number.is_finite() { Ok(()) } else { Err(Stop::NotFinite) }
    }

    fn serialize_f64(self, number: f64) -> Result<(), Stop> {
        if number.is_finite() { Ok(()) } else { Err(Stop::NotFinite) }
    }

    fn serialize_none(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        self.parts(1)?.part(Step::Field(variant), value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Stop> {
        self.parts(1)
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Stop> {
        self.parts(1)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Stop> {
        self.parts(1)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Stop> {
        self.parts(2)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Stop> {
        self.parts(1)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Stop> {
        self.parts(1)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Stop> {
        self.parts(2)
    }
}

macro_rules! elements {
    ($($trait:ident::$method:ident)*) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = Stop;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.element(value)
            }

            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        })*
    };
}

elements! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

macro_rules! fields {
    ($($trait:ident)*) => {
        $(impl $trait for Parts<'_> {
            type Ok = ();
            type Error = Stop;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Stop> {
                self.part(Step::Field(name), value)
            }

            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

impl SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        let shown = serde_json::to_value(key).map_err(Stop::custom)?;
        self.key = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        let key = std::mem::take(&mut self.key);
        self.part(Step::Key(key), value)
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}
