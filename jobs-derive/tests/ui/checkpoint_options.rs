use jobs_core::{Checkpoint, Job};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0", checkpoint_every = "5s")]
struct At(i64);

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "reports.export", version = "1.0.0", checkpoint = At, checkpoint_every = "5")]
#[job(on_checkpoint = "strict", on_old_checkpoint = "ignore")]
struct Export;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.send", version = "1.0.0", checkpoint_every = "0s", on_old_checkpoint = "restart")]
struct Send;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "mail.digest", version = "1.0.0", checkpoint = At, throttle = "5s")]
struct Digest;

fn main() {}
