//! Options may be spread over attributes, end in commas, and stand behind `cfg_attr`.

use jobs_core::{Job, Payload, Versioned};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = r"billing.charge",)]
#[cfg_attr(all(), job(version = "1.2.3"))]
#[job()]
#[job(aliases("old", "older",), timeout = "250ms",)]
#[serde(deny_unknown_fields)]
struct Charge {
    cents: u64,
}

fn main() {
    assert_eq!(Charge::KIND, "billing.charge");
    assert_eq!(Charge::VERSION.patch, 3);
    assert_eq!(Charge::ALIASES, ["old", "older"]);
    assert_eq!(Charge::POLICY.timeout.unwrap().as_millis(), 250);
    assert!(Charge::decode(1, r#"{"cents":1,"more":2}"#).is_err());
    assert_eq!(Charge::decode(1, r#"{"cents":1}"#).unwrap().cents, 1);
}
