use jobs_core::{Budget, ClaimNumber, Counters, Fence, JobId, Refusal, Timestamp};

use super::*;

const NOW: Duration = Duration::from_secs(1_000);
const MIDDLE: u64 = u64::MAX / 2;

fn queue() -> QueueName {
    QueueName::default()
}

fn job(id: i64, kind: &str) -> ClaimedJob {
    ClaimedJob {
        fence: Fence { job: JobId(id), claim: ClaimNumber(1) },
        queue: queue(),
        place: Place { at_us: id * 10, job: JobId(id) },
        kind: kind.to_owned(),
        version: "1.0.0".to_owned(),
        min_reader: None,
        payload: "null".to_owned(),
        headers: None,
        counters: Counters::default(),
        budget: Budget::default(),
        checkpoint: None,
        refused: None,
        enqueued_at: Timestamp::from_micros(0),
        is_expired: false,
        key_number: 0,
        due_at: Timestamp::from_micros(0),
    }
}

fn judge(route: &Route) -> RouteVerdict {
    if route.as_str().starts_with("known.") {
        RouteVerdict::Reads
    } else {
        RouteVerdict::Foreign(Refusal::UnknownKind)
    }
}

fn listed(routes: &mut Routes, now: Duration) {
    let of = |kind: &str| (queue(), Route::derive(kind, "1.0.0", None));
    routes.refresh(vec![of("known.a"), of("foreign.b")], now, judge);
}

#[test]
fn a_claim_starts_where_the_last_one_ended_and_returns_to_the_head() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    let is_short = noted(&mut routes, &[job(1, "known.a"), job(2, "known.a")], 2);
    assert!(!is_short);
    assert_eq!(routes.heads(NOW, 2, Plan::Apart)[0].after, Some(job(2, "known.a").place));
    assert!(!routes.is_return_due(NOW));
    assert!(routes.is_return_due(NOW + RETURN));
    listed(&mut routes, NOW + RETURN);
    assert_eq!(routes.heads(NOW, 2, Plan::Apart)[0].after, None);
}

/// A claim from all heads that gave these jobs; whether it came back short.
fn noted(routes: &mut Routes, jobs: &[ClaimedJob], limit: u32) -> bool {
    let heads = routes.heads(NOW, limit, Plan::Apart);
    routes.note(&heads, jobs, limit, NOW, MIDDLE)
}

#[test]
fn a_foreign_route_behind_others_is_asked_for_once_a_listing() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    assert_eq!(routes.heads(NOW, 2, Plan::Apart).len(), 2);
    noted(&mut routes, &[job(1, "known.a"), job(2, "known.a")], 2);
    let heads = routes.heads(NOW, 2, Plan::Apart);
    assert_eq!(heads.len(), 1, "the claims that follow are from one head: {heads:?}");
    listed(&mut routes, NOW + RETURN);
    assert_eq!(routes.heads(NOW, 2, Plan::Apart).len(), 2);
}

#[test]
fn a_foreign_route_is_tried_once_per_cool_down() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    let foreign = |routes: &Routes, now| {
        let heads = routes.heads(now, 8, Plan::Apart);
        heads.iter().find(|head| head.route.as_str().starts_with("foreign.")).map(|h| h.limit)
    };
    assert_eq!(foreign(&routes, NOW), Some(1));
    noted(&mut routes, &[job(9, "foreign.b")], 8);
    assert_eq!(foreign(&routes, NOW), None);
    assert!(routes.next_probe_at().is_some_and(|at| at > NOW && at <= NOW + COOL_DOWN * 11 / 10));
    let later = NOW + COOL_DOWN / 2;
    listed(&mut routes, later);
    assert_eq!(foreign(&routes, later), None, "a new listing does not end the cool-down");
    let after = NOW + COOL_DOWN * 2;
    listed(&mut routes, after);
    assert_eq!(foreign(&routes, after), Some(1));
}

#[test]
fn suspects_stand_apart_unless_they_are_foreign() {
    let mut routes = Routes::default();
    listed(&mut routes, NOW);
    assert!(!routes.has_suspects());
    let suspect = |kind: &str| Route::derive(kind, "1.0.0", None).after_crashes(4);
    let all = ["known.a", "foreign.b"].map(|kind| (queue(), suspect(kind)));
    routes.refresh(all.to_vec(), NOW, judge);
    assert!(routes.has_suspects());
    let heads = |plan| routes.heads(NOW, 8, plan).into_iter().map(|head| head.route);
    assert_eq!(heads(Plan::Apart).collect::<Vec<_>>(), [suspect("foreign.b")]);
    assert_eq!(heads(Plan::Alone).collect::<Vec<_>>(), [suspect("known.a")]);
    assert_eq!(heads(Plan::Beside).count(), 2);
    assert_eq!(heads(Plan::Clear).count(), 0);
}
