//! Values may be fragments that a macro received.

use jobs_core::{Checkpoint, Job, PastJob, Payload, Versioned};
use serde::{Deserialize, Serialize};

macro_rules! job {
    ($name:ident, $kind:literal, $alias:literal, $version:expr, $past:ty, $at:ty, $priority:expr) => {
        #[derive(Serialize, Deserialize, Job)]
        #[job(kind = $kind, version = $version, previous = $past, checkpoint = $at)]
        #[job(priority = $priority, aliases($alias, "even.older"))]
        struct $name;
    };
}

#[derive(Serialize, Deserialize, PastJob)]
#[job(kind = "old", version = "1.0.0")]
struct PingV1;

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0")]
struct At;

job!(Ping, "ping", "old", "2.0.0", self::PingV1, crate::At, -5);

impl From<PingV1> for Ping {
    fn from(_: PingV1) -> Self {
        Self
    }
}

fn main() {
    assert_eq!(Ping::KIND, "ping");
    assert_eq!(Ping::VERSION.major, 2);
    assert_eq!(Ping::ALIASES, ["old", "even.older"]);
    assert_eq!(Ping::POLICY.priority, -5);
}
