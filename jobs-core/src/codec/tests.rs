use std::collections::BTreeMap;

use super::*;
use crate::job::DecodeError;
use crate::random::{Random as _, SeededRandom};

#[derive(Serialize)]
struct Line {
    price: f64,
}

#[derive(Serialize)]
struct Order {
    lines: Vec<Line>,
    rates: BTreeMap<&'static str, f32>,
    note: Option<f64>,
}

#[derive(Serialize)]
enum Shape {
    Circle { radius: f64 },
    Point(f64, f64),
}

fn path_of<T: Serialize>(value: &T) -> String {
    match encode(value) {
        Err(EncodeError::NotFinite { path }) => path,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_number_that_json_cannot_keep_is_refused_by_its_path() {
    let order = |price, rate, note| Order {
        lines: vec![Line { price: 1.0 }, Line { price }],
        rates: BTreeMap::from([("eur", rate)]),
        note,
    };
    assert_eq!(path_of(&order(f64::NAN, 1.0, None)), "lines[1].price");
    assert_eq!(path_of(&order(1.0, f32::INFINITY, None)), "rates.eur");
    assert_eq!(path_of(&order(1.0, 1.0, Some(f64::NEG_INFINITY))), "note");
    assert_eq!(path_of(&Shape::Circle { radius: f64::NAN }), "radius");
    assert_eq!(path_of(&Shape::Point(0.0, f64::NAN)), "[1]");
    assert_eq!(path_of(&f64::NAN), "");
    assert!(encode(&order(1.0, 1.0, Some(0.1))).is_ok());
}

#[test]
fn every_digit_and_every_character_is_kept() {
    let value = (u64::MAX, i64::MIN, 1_970_670_598_291_982_290_i64, 0.1, "a\0b\u{202e}");
    let text = encode(&value).unwrap();
    assert_eq!(
        text,
        "[18446744073709551615,-9223372036854775808,1970670598291982290,0.1,\"a\\u0000b\u{202e}\"]"
    );
    assert!(!text.contains('\0'));
}

#[test]
fn every_floating_point_number_comes_back_as_it_was() {
    let seed = 7;
    let random = SeededRandom::new(seed);
    let doubles = std::iter::repeat_with(|| f64::from_bits(random.draw()));
    let prices = (0..20_000_u32).map(|cents| f64::from(cents) * 0.01 + 0.007_3);
    for number in doubles.filter(|number| number.is_finite()).take(20_000).chain(prices) {
        let read: f64 = DecodeError::from_json(&encode(&number).unwrap()).unwrap();
        assert_eq!(read.to_bits(), number.to_bits(), "{number:e} became {read:e}");
    }
    let singles = std::iter::repeat_with(|| f32::from_bits(high_bits(random.draw())));
    for number in singles.filter(|number| number.is_finite()).take(20_000) {
        let read: f32 = DecodeError::from_json(&encode(&number).unwrap()).unwrap();
        assert_eq!(read.to_bits(), number.to_bits(), "{number:e} became {read:e}");
    }
}

fn high_bits(draw: u64) -> u32 {
    u32::try_from(draw >> 32).expect("32 bits")
}

/// A list of lists, each with the next one.
#[derive(Debug, Serialize, serde::Deserialize)]
enum Nest {
    Inner(Vec<Nest>),
    Pair(Box<(Nest, u8)>),
    Named { inner: Box<Nest> },
    Tuple(Box<Nest>, u8),
}

#[test]
fn what_its_reader_would_not_follow_is_refused_and_nothing_less_deep() {
    let lists = |depth| (0..depth).fold(serde_json::Value::Null, |inner, _| vec![inner].into());
    let wraps: [fn(Nest) -> Nest; 4] = [
        |nest| Nest::Inner(vec![nest]),
        |nest| Nest::Pair(Box::new((nest, 1))),
        |nest| Nest::Named { inner: Box::new(nest) },
        |nest| Nest::Tuple(Box::new(nest), 1),
    ];
    for depth in 0..200_u8 {
        let value = lists(depth);
        let text = value.to_string();
        let is_read = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        assert_eq!(encode(&value).is_ok(), is_read, "{depth} lists");
        assert_eq!(check_levels(&text).is_ok(), is_read, "{depth} lists as text");
        for (nth, wrap) in wraps.into_iter().enumerate() {
            let nest = (0..depth).fold(Nest::Inner(Vec::new()), |inner, _| wrap(inner));
            let text = serde_json::to_string(&nest).unwrap();
            let is_read = serde_json::from_str::<Nest>(&text).is_ok();
            assert_eq!(encode(&nest).is_ok(), is_read, "{depth} of the variant {nth}");
            assert_eq!(check_levels(&text).is_ok(), is_read, "{depth} of {nth} as text");
        }
    }
    let side_by_side = format!("[{}]", [r#"{"[\\\"[[{": [[]]}"#; 100].join(","));
    assert!(check_levels(&side_by_side).is_ok());
    let text = format!("{:?}", "[\\\"".repeat(200));
    assert!(check_levels(&text).is_ok(), "brackets within a text nest nothing");
    let error = encode(&lists(128)).unwrap_err();
    assert!(matches!(error, EncodeError::TooDeep) && error.to_string().contains("127"), "{error}");
}
