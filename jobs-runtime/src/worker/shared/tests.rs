use super::*;

const LEASE: Duration = Duration::from_secs(30);

fn moved(runtime: Duration, heartbeat: Duration) -> Pulse {
    let pulse = Pulse::default();
    pulse.runtime_ms.store(millis(runtime), Ordering::Relaxed);
    pulse.heartbeat(heartbeat);
    pulse
}

#[test]
fn what_has_not_moved_for_longer_than_a_lease_stands_still() {
    let now = Duration::from_mins(10);
    let fresh = now.saturating_sub(LEASE);
    let old = fresh.saturating_sub(Duration::from_millis(1));
    assert_eq!(moved(fresh, fresh).standstill(now, LEASE), None);
    assert_eq!(moved(old, fresh).standstill(now, LEASE), Some(Standstill::Runtime));
    assert_eq!(moved(fresh, old).standstill(now, LEASE), Some(Standstill::Heartbeat));
    assert_eq!(moved(old, old).standstill(now, LEASE), Some(Standstill::Heartbeat));
}

#[test]
fn a_worker_that_has_not_begun_stands_not_still() {
    let now = Duration::from_mins(10);
    assert_eq!(moved(Duration::ZERO, Duration::ZERO).standstill(now, LEASE), None);
}
