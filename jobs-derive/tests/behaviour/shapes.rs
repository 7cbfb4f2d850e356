//! The shapes that are nearly nothing, which a decoder of another system once took for each other.

use jobs_core::{DecodeError, Job, Versioned};
use serde::{Deserialize, Serialize};

use crate::stored;

macro_rules! shape {
    ($kind:literal, $($shape:tt)+) => {
        #[derive(Debug, PartialEq, Serialize, Deserialize, Job)]
        #[job(kind = $kind, version = "1.0.0")]
        $($shape)+
    };
}

shape!("shape.unit", struct Unit;);
shape!("shape.empty", struct Empty {});
shape!("shape.empty_tuple", struct EmptyTuple(););
shape!("shape.newtype", struct Newtype(u64););
shape!("shape.newtype_of_unit", struct NewtypeOfUnit(Unit););
shape!("shape.tuple", struct Tuple(i64, String););
shape!(
    "shape.one_none",
    struct OneNone {
        memo: Option<String>,
    }
);
shape!("shape.newtype_of_none", struct NewtypeOfNone(Option<Unit>););
shape!(
    "shape.choice",
    enum Choice {
        Unit,
        Newtype(u64),
        Tuple(u8, u8),
        Named { at: i64 },
    }
);

#[test]
fn every_shape_reads_back_what_it_wrote() {
    fn check<T: Versioned + PartialEq + std::fmt::Debug>(value: &T, text: &str) {
        let (written, read) = stored(value);
        assert_eq!(written, text);
        assert_eq!(read, *value);
    }
    check(&Unit, "null");
    check(&Empty {}, "{}");
    check(&EmptyTuple(), "[]");
    check(&Newtype(u64::MAX), "18446744073709551615");
    check(&NewtypeOfUnit(Unit), "null");
    check(&Tuple(i64::MIN, "a\0b".to_owned()), r#"[-9223372036854775808,"a\u0000b"]"#);
    check(&OneNone { memo: None }, r#"{"memo":null}"#);
    check(&NewtypeOfNone(None), "null");
    check(&Choice::Unit, r#""Unit""#);
    check(&Choice::Newtype(7), r#"{"Newtype":7}"#);
    check(&Choice::Tuple(1, 2), r#"{"Tuple":[1,2]}"#);
    check(&Choice::Named { at: -1 }, r#"{"Named":{"at":-1}}"#);
}

#[test]
fn a_text_of_another_shape_is_malformed_and_says_where() {
    let error = Unit::decode(1, "{}").unwrap_err();
    assert!(matches!(error, DecodeError::Malformed(_)));
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "invalid type: map, expected unit struct Unit at line 1 column 0");
}

#[test]
fn a_major_without_a_line_is_said_and_not_guessed_at() {
    for major in [0, 2, u32::MAX] {
        let error = Unit::decode(major, "null").unwrap_err();
        assert!(matches!(error, DecodeError::NoLine { major: of } if of == major), "{error:?}");
        assert_eq!(error.to_string(), format!("no line of the shape reads major {major}"));
    }
}
