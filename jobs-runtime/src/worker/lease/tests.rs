use std::time::Duration;

use jobs_core::{Lease, WorkerId};

use super::Tenancy;

#[test]
fn nothing_is_swept_for_a_lease_after_an_outage_however_long_it_was() {
    let lease = Lease::default();
    let tenancy = Tenancy::new(lease);
    tenancy.registered(WorkerId(1), Duration::ZERO);
    assert!(tenancy.may_sweep(Duration::ZERO), "a worker that starts has had no outage");
    let (lost_at, back_at) = (lease.length(), lease.length() * 5);
    tenancy.lost(WorkerId(1), lost_at);
    tenancy.registered(WorkerId(2), back_at);
    let until = back_at + lease.length();
    assert!(!tenancy.may_sweep(until.saturating_sub(Duration::from_micros(1))));
    assert!(tenancy.may_sweep(until));
}
