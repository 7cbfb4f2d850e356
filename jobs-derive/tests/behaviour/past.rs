//! Three majors deep, by `From` and by `TryFrom`.

use std::fmt;

use jobs_core::{
    Checkpoint, DecodeError, Job, Line, PastJob, Reader, Stamp, Verdict, Versioned, judge,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize, PastJob)]
#[job(kind = "debit", version = "1.4.0")]
struct ChargeV1 {
    dollars: i64,
}

/// Skips major 2, which was never deployed.
#[derive(Debug, PartialEq, Serialize, Deserialize, PastJob)]
#[job(kind = "debit", version = "3.0.0", previous = ChargeV1)]
struct ChargeV3 {
    cents: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "4.2.0", readable_by = "4.1", previous = ChargeV3)]
#[job(aliases("debit"))]
struct Charge {
    cents: u64,
    #[serde(default)]
    memo: Option<String>,
}

#[derive(Debug)]
struct Negative(i64);

impl fmt::Display for Negative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cents can't be charged", self.0)
    }
}

impl From<ChargeV1> for ChargeV3 {
    fn from(past: ChargeV1) -> Self {
        Self { cents: past.dollars * 100 }
    }
}

impl TryFrom<ChargeV3> for Charge {
    type Error = Negative;

    fn try_from(past: ChargeV3) -> Result<Self, Negative> {
        let cents = u64::try_from(past.cents).map_err(|_| Negative(past.cents))?;
        Ok(Self { cents, memo: None })
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.1.0")]
struct AtV1(i64);

#[derive(Debug, PartialEq, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "2.0.0", previous = AtV1)]
enum At {
    Rows { last_id: i64 },
}

impl From<AtV1> for At {
    fn from(past: AtV1) -> Self {
        Self::Rows { last_id: past.0 }
    }
}

#[test]
fn lines_are_those_of_the_whole_chain_oldest_first() {
    let [one, three, four] = [(1, 4), (3, 0), (4, 2)].map(|(major, minor)| Line { major, minor });
    assert_eq!(ChargeV1::lines(), [one]);
    assert_eq!(ChargeV3::lines(), [one, three]);
    assert_eq!(Charge::lines(), [one, three, four]);
    assert_eq!(At::lines(), [(1, 1), (2, 0)].map(|(major, minor)| Line { major, minor }));
}

#[test]
fn every_older_major_is_upcast_step_by_step() {
    let charge = |cents| Charge { cents, memo: None };
    assert_eq!(Charge::decode(1, r#"{"dollars":7}"#).unwrap(), charge(700));
    assert_eq!(Charge::decode(3, r#"{"cents":7}"#).unwrap(), charge(7));
    assert_eq!(Charge::decode(4, r#"{"cents":7}"#).unwrap(), charge(7));
    assert_eq!(At::decode(1, "5").unwrap(), At::Rows { last_id: 5 });
}

#[test]
fn a_failed_upcast_says_what_the_conversion_said() {
    for (major, text) in [(1, r#"{"dollars":-7}"#), (3, r#"{"cents":-700}"#)] {
        let error = Charge::decode(major, text).unwrap_err();
        assert_eq!(error.to_string(), "the upcast failed: -700 cents can't be charged");
    }
}

#[test]
fn an_older_text_that_does_not_decode_is_malformed_and_no_failed_upcast() {
    for major in [1, 3, 4] {
        let error = Charge::decode(major, "{}").unwrap_err();
        assert!(matches!(error, DecodeError::Malformed(_)), "{error:?}");
    }
}

#[test]
fn a_major_between_the_lines_is_not_read_as_its_neighbour() {
    for major in [0, 2, 5] {
        let error = Charge::decode(major, r#"{"dollars":7,"cents":7}"#).unwrap_err();
        assert!(matches!(error, DecodeError::NoLine { major: of } if of == major), "{error:?}");
    }
}

#[test]
fn the_lines_judge_what_the_chain_decodes() {
    let lines = Charge::lines();
    let verdict = |version| judge(Stamp::parse(version, None).unwrap(), Reader::Reads(&lines));
    assert_eq!(verdict("1.0.0"), Verdict::Upcast { from: 1 });
    assert_eq!(verdict("3.0.9"), Verdict::Upcast { from: 3 });
    assert_eq!(verdict("4.0.0"), Verdict::Run);
    assert!(matches!(verdict("2.0.0"), Verdict::Refuse(_)));
}
