//! A payload can go to another thread.

use jobs_core::Job;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "billing.charge", version = "1.0.0")]
struct Charge {
    order: Order,
}

#[derive(Serialize, Deserialize)]
struct Order(#[serde(skip)] std::marker::PhantomData<*const ()>);

fn main() {}
