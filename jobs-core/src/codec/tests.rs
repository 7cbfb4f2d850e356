use std::collections::BTreeMap;

use super::*;

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
