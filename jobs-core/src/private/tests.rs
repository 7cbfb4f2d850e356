use serde::{Deserialize, Serialize};

use crate::{Job, Payload};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "ping", version = "1.0.0")]
struct Ping;

#[test]
fn the_derives_work_inside_the_core() {
    assert_eq!(Ping::KIND, "ping");
}
