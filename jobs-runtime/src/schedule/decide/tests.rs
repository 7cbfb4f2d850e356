use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt;
use jobs_core::store::memory::MemoryStore;
use jobs_core::store::{Advanced, Declaration, Filter, Inspect, NewWorker, Schedules, Store};
use jobs_core::{
    BuildId, Clock, JobRecord, Lease, ManualClock, Schedule, ScheduleName, State, WorkerId,
    WorkerName,
};
use serde::{Deserialize, Serialize};

use super::*;
use crate::clock::SystemClock;
use crate::schedule::declaration;

#[derive(Debug, Serialize, Deserialize, jobs_core::Job)]
#[job(
    kind = "report.nightly",
    version = "1.2.0",
    readable_by = "1.1",
    queue = "reports",
    crate = "jobs_core"
)]
struct Nightly {
    list: String,
}

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond())
}

fn nightly(when: &str) -> Schedule {
    Schedule::new(when, &Nightly { list: "all".to_owned() })
}

fn build(label: &str) -> BuildId {
    BuildId::new(label).unwrap()
}

/// A store on a clock that the test moves, and whoever leads on it.
struct Scene {
    store: MemoryStore,
    clock: Arc<ManualClock>,
}

impl Scene {
    fn at(start: &str) -> Self {
        let clock = Arc::new(ManualClock::new(at(start)));
        Self { store: MemoryStore::new(clock.clone(), 7), clock }
    }

    /// What is asked of the memory store is answered at once.
    fn now<T>(answer: impl Future<Output = T>) -> T {
        answer.now_or_never().expect("the memory store waits for nobody")
    }

    fn worker(&self, label: &str) -> WorkerId {
        let worker = NewWorker {
            name: WorkerName::new("one").unwrap(),
            build: build(label),
            manifest: "{}".to_owned(),
            lease: Lease::default(),
        };
        Self::now(self.store.register(&worker)).unwrap()
    }

    fn close(&self, worker: WorkerId, label: &str) {
        let by = jobs_core::store::Author { worker: Some(worker), build: build(label) };
        let mut heartbeat = Self::now(self.store.heartbeat()).unwrap();
        let leaving = jobs_core::store::Leaving::default();
        Self::now(heartbeat.close(worker, &by, &leaving)).unwrap();
    }

    fn declare(&self, by: Option<WorkerId>, label: &str, schedule: &Schedule) {
        let declaration = declaration(schedule, &build(label)).unwrap();
        self.declare_text(by, declaration);
    }

    fn declare_text(&self, by: Option<WorkerId>, declaration: Declaration) {
        Self::now(self.store.declare(by, &[declaration])).unwrap();
    }

    /// One round of a leader whose clock is the store's.
    fn lead(&self) -> Vec<Decision> {
        let view = Self::now(self.store.schedules()).unwrap();
        let decided = view.schedules.iter().map(|record| {
            let decision = decide(view.now, record);
            if let Decision::Step(step) = &decision {
                let advanced = Self::now(self.store.advance(step)).unwrap();
                assert_ne!(advanced, Advanced::Outrun, "nobody else leads");
            }
            decision
        });
        decided.collect()
    }

    /// Leads every so often until an instant.
    fn lead_until(&self, end: &str, every: Duration) {
        while self.instant() < at(end) {
            self.lead();
            self.clock.advance(every);
        }
        self.lead();
    }

    fn instant(&self) -> Timestamp {
        self.clock.now()
    }

    fn jobs(&self) -> Vec<JobRecord> {
        Self::now(self.store.jobs(&Filter::default(), u32::MAX)).unwrap()
    }

    /// When the jobs so far were due, in order of enqueue.
    fn ticked(&self) -> Vec<String> {
        self.jobs().iter().map(|job| job.due_at.to_string()).collect()
    }

    fn next_at(&self) -> Option<String> {
        let view = Self::now(self.store.schedules()).unwrap();
        view.schedules[0].next_at.map(|at| at.to_string())
    }
}

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn a_tick_enqueues_what_was_declared() {
    let scene = Scene::at("2026-05-01T00:00:00Z");
    scene.declare(None, "shop 1.0", &nightly("0 3 * * *"));
    scene.lead_until("2026-05-01T03:00:00Z", MINUTE);
    let [job] = &scene.jobs()[..] else { panic!("one job") };
    assert_eq!((job.kind.as_str(), job.queue.as_str()), ("report.nightly", "reports"));
    assert_eq!((job.version.as_str(), job.min_reader.as_deref()), ("1.2.0", Some("1.1")));
    assert_eq!((job.payload.as_str(), job.state), (r#"{"list":"all"}"#, State::Ready));
    assert_eq!(job.build.as_deref(), Some("shop 1.0"));
    let headers = job.headers.as_deref();
    assert_eq!(
        headers,
        Some(r#"{"jobs-schedule":"report.nightly","jobs-tick":"2026-05-01T03:00:00Z"}"#)
    );
}

#[test]
fn the_day_the_clocks_go_back_has_its_ticks_whoever_leads() {
    let zone = "America/New_York";
    let expected = [
        ("0 12 * * *", vec!["2026-11-01T17:00:00Z"]),
        ("30 1 * * *", vec!["2026-11-01T05:30:00Z"]),
    ];
    for (when, ticks) in expected {
        // Each round is a leader that has just started: it remembers nothing.
        let scene = Scene::at("2026-11-01T04:00:00Z");
        scene.declare(None, "shop", &nightly(&format!("{when} {zone}")));
        scene.lead_until("2026-11-02T04:00:00Z", MINUTE);
        assert_eq!(scene.ticked(), ticks, "{when}");
    }
    let scene = Scene::at("2026-11-01T03:59:00Z");
    scene.declare(None, "shop", &nightly(&format!("*/30 * * * * {zone}")));
    scene.lead_until("2026-11-01T09:00:00Z", MINUTE);
    let instants: Vec<_> = scene.jobs().iter().map(|job| job.due_at).collect();
    assert_eq!(instants.len(), 11);
    assert!(instants.windows(2).all(|pair| pair[1].since(pair[0]) == MINUTE * 30));
}

#[test]
fn leaders_that_wake_early_and_flap_tick_each_second_once() {
    for when in ["* * * * * *", "every 1s", "* * * * *"] {
        let scene = Scene::at("2026-05-01T00:00:00.5Z");
        scene.declare(None, "shop", &nightly(when));
        scene.lead();
        let mut seen = BTreeSet::new();
        for round in 0..1_000_u64 {
            scene.clock.advance(Duration::from_millis(299 + round % 3));
            let view = Scene::now(scene.store.schedules()).unwrap();
            // Two leaders look at once; one of them 5 ms early and the other 5 ms late.
            let looks = [-5_000, 5_000].map(|off| {
                let now = Timestamp::from_micros(view.now.as_micros() + off);
                decide(now, &view.schedules[0])
            });
            for step in looks.iter().filter_map(|look| match look {
                Decision::Step(step) => Some(step),
                Decision::Wait(_) | Decision::Unreadable(_) => None,
            }) {
                if let Advanced::Moved(_) = Scene::now(scene.store.advance(step)).unwrap() {
                    seen.extend(step.ticks.iter().map(|(at, _)| *at));
                }
            }
        }
        let due: Vec<_> = scene.jobs().iter().map(|job| job.due_at).collect();
        assert_eq!(due.len(), seen.len(), "{when}: one job a tick");
        let step = if when == "* * * * *" { MINUTE } else { Duration::from_secs(1) };
        assert!(due.windows(2).all(|pair| pair[1].since(pair[0]) == step), "{when}: none left out");
        assert!(due.len() >= 5, "{when}: {}", due.len());
    }
}

#[test]
fn missed_ticks_are_made_up_for_as_declared() {
    let cases = [
        (CatchUp::None, vec![]),
        (CatchUp::Latest, vec!["2026-05-04T03:00:00Z"]),
        (CatchUp::All(2), vec!["2026-05-03T03:00:00Z", "2026-05-04T03:00:00Z"]),
        (
            CatchUp::All(9),
            vec!["2026-05-02T03:00:00Z", "2026-05-03T03:00:00Z", "2026-05-04T03:00:00Z"],
        ),
    ];
    for (catch_up, ticks) in cases {
        let scene = Scene::at("2026-05-01T12:00:00Z");
        scene.declare(None, "shop", &nightly("0 3 * * *").catch_up(catch_up));
        scene.lead();
        scene.clock.advance(Duration::from_hours(72));
        scene.lead();
        assert_eq!(scene.ticked(), ticks, "{catch_up}");
        assert_eq!(scene.next_at().as_deref(), Some("2026-05-05T03:00:00Z"), "{catch_up}");
        scene.lead();
        assert_eq!(scene.ticked(), ticks, "{catch_up}: once");
    }
}

#[test]
fn a_tick_that_is_a_little_late_is_never_left_out() {
    for catch_up in [CatchUp::None, CatchUp::Latest, CatchUp::All(1)] {
        let scene = Scene::at("2026-05-01T00:00:00Z");
        scene.declare(None, "shop", &nightly("every 10s").catch_up(catch_up));
        scene.lead();
        // A leader was killed, and the next one came when its lease had ended.
        scene.clock.advance(Duration::from_secs(45));
        scene.lead();
        let seconds = [10, 20, 30, 40].map(|second| format!("2026-05-01T00:00:{second}Z"));
        assert_eq!(scene.ticked(), seconds, "{catch_up}");
    }
}

#[test]
fn an_outage_of_a_year_is_looked_over_at_once() {
    let began = SystemClock.elapsed();
    for when in ["* * * * * *", "every 1s"] {
        let scene = Scene::at("2026-05-01T00:00:00Z");
        scene.declare(None, "shop", &nightly(when).catch_up(CatchUp::All(1_000)));
        scene.lead();
        scene.clock.advance(Duration::from_hours(24 * 365));
        scene.lead();
        assert_eq!(scene.jobs().len(), 1_061, "{when}");
    }
    let took = SystemClock.elapsed().saturating_sub(began);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_new_expression_does_not_tick_at_once() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    scene.declare(None, "shop", &nightly("0 3 * * *"));
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T03:00:00Z"));
    scene.clock.advance(Duration::from_hours(15) + Duration::from_secs(1));
    // The old expression's tick has come, and the new one's would have come an hour ago.
    scene.declare(None, "shop", &nightly("0 2 * * *"));
    scene.lead();
    assert_eq!(scene.ticked(), [""; 0]);
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-03T02:00:00Z"));
}

#[test]
fn a_new_payload_behind_the_same_expression_changes_no_tick() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    scene.declare(None, "shop 1", &nightly("0 3 * * *"));
    scene.lead();
    let other = Schedule::new("0 3 * * *", &Nightly { list: "few".to_owned() });
    scene.declare(None, "shop 2", &other);
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T03:00:00Z"));
    // Declared anew in the very moment of the tick, as by a deploy.
    scene.clock.advance(Duration::from_hours(15));
    scene.declare(None, "shop 3", &nightly("0 3 * * *"));
    scene.lead();
    assert_eq!(scene.ticked(), ["2026-05-02T03:00:00Z"]);
    assert_eq!(scene.jobs()[0].build.as_deref(), Some("shop 3"));
}

#[test]
fn what_live_builds_declare_ticks_whoever_leads() {
    let scene = Scene::at("2026-05-01T00:00:30Z");
    let (a, b) = (scene.worker("a"), scene.worker("b"));
    scene.declare(Some(a), "a", &nightly("* * * * *").named("of a"));
    scene.declare(Some(b), "b", &nightly("* * * * *").named("of b"));
    // The leader is neither: it knows only what the store says.
    scene.lead_until("2026-05-01T00:03:00Z", Duration::from_secs(10));
    assert_eq!(scene.jobs().len(), 6);
    scene.close(b, "b");
    scene.lead_until("2026-05-01T00:05:00Z", Duration::from_secs(10));
    assert_eq!(scene.jobs().len(), 8, "nobody alive declares b's any more");
    let b = scene.worker("b");
    scene.declare(Some(b), "b", &nightly("* * * * *").named("of b"));
    scene.lead();
    assert_eq!(scene.jobs().len(), 10, "the two of b that are at most a minute late");
}

#[test]
fn the_newest_live_build_decides_and_a_rollback_gives_back() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    let old = scene.worker("old");
    scene.declare(Some(old), "old", &nightly("0 3 * * *"));
    scene.lead();
    scene.clock.advance(MINUTE);
    let new = scene.worker("new");
    scene.declare(Some(new), "new", &nightly("0 4 * * *"));
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T04:00:00Z"));
    // An old worker that starts again in the middle of the rollout does not take it back.
    scene.clock.advance(MINUTE);
    let again = scene.worker("old");
    scene.declare(Some(again), "old", &nightly("0 3 * * *"));
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T04:00:00Z"));
    scene.close(new, "new");
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T03:00:00Z"));
}

#[test]
fn what_a_person_declares_goes_before_every_build() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    scene.declare(None, "by hand", &nightly("0 5 * * *"));
    scene.clock.advance(MINUTE);
    let worker = scene.worker("new");
    scene.declare(Some(worker), "new", &nightly("0 4 * * *"));
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T05:00:00Z"));
    Scene::now(scene.store.undeclare(&ScheduleName::new("report.nightly").unwrap())).unwrap();
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T04:00:00Z"));
}

/// What a person's pause declares, with what they had declared before.
fn pause(instead: Option<&Schedule>) -> Declaration {
    let instead = instead.map(|schedule| declaration(schedule, &build("by hand")).unwrap().text);
    let (by, reason) = ("ann".to_owned(), "the bank is away".to_owned());
    let text = Pause { by, reason, at_us: 0, instead }.text();
    Declaration { name: ScheduleName::new("report.nightly").unwrap(), text }
}

#[test]
fn a_paused_schedule_does_not_tick_and_is_not_made_up_for() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    let worker = scene.worker("shop");
    let daily = nightly("0 3 * * *").catch_up(CatchUp::All(10));
    scene.declare(Some(worker), "shop", &daily);
    scene.lead();
    scene.declare_text(None, pause(None));
    assert!(matches!(scene.lead()[..], [Decision::Step(_)]), "the pause is written once");
    assert_eq!(scene.lead(), [Decision::Wait(None)]);
    // A build that is rolled out meanwhile changes nothing of it.
    let new = scene.worker("new");
    scene.declare(Some(new), "new", &nightly("0 4 * * *").catch_up(CatchUp::All(10)));
    scene.lead_until("2026-05-04T12:00:00Z", Duration::from_hours(1));
    assert_eq!((scene.ticked(), scene.next_at()), (Vec::new(), None));
    Scene::now(scene.store.undeclare(&ScheduleName::new("report.nightly").unwrap())).unwrap();
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-05T04:00:00Z"));
    assert_eq!(scene.ticked(), [""; 0], "what was paused is not made up for");
}

#[test]
fn a_pause_that_comes_late_leaves_out_the_ticks_that_nobody_has_seen() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    scene.declare(None, "by hand", &nightly("every 1h"));
    scene.lead();
    scene.clock.advance(MINUTE * 61);
    scene.declare_text(None, pause(Some(&nightly("every 1h"))));
    scene.lead();
    assert_eq!((scene.ticked(), scene.next_at()), (Vec::new(), None));
}

#[test]
fn a_schedule_that_nobody_declares_for_a_day_is_forgotten() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    let worker = scene.worker("shop");
    scene.declare(Some(worker), "shop", &nightly("0 3 * * *"));
    scene.lead();
    scene.close(worker, "shop");
    scene.lead_until("2026-05-04T12:00:00Z", Duration::from_hours(1));
    assert_eq!((scene.ticked(), scene.next_at()), (Vec::new(), None));
    let worker = scene.worker("shop");
    scene.declare(Some(worker), "shop", &nightly("0 3 * * *"));
    scene.lead();
    assert_eq!(scene.ticked(), [""; 0], "what was forgotten begins anew");
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-05T03:00:00Z"));
}

#[test]
fn a_text_of_a_later_build_is_left_to_it_and_the_others_tick() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    let name = |text| ScheduleName::new(text).unwrap();
    for text in ["", "{}", r#"{"when":"at noon","job":{}}"#, "\u{0}"] {
        scene.declare_text(None, Declaration { name: name("a"), text: text.to_owned() });
        scene.declare(None, "shop", &nightly("0 3 * * *").named("b"));
        let decided = scene.lead();
        assert!(matches!(&decided[0], Decision::Unreadable(why) if !why.is_empty()), "{decided:?}");
        assert!(!matches!(&decided[1], Decision::Unreadable(_)), "{decided:?}");
    }
}

#[test]
fn fields_that_a_later_build_adds_are_left_alone() {
    let scene = Scene::at("2026-05-01T12:00:00Z");
    let declared = declaration(&nightly("0 3 * * *"), &build("shop")).unwrap();
    let text = declared.text.replacen('{', r#"{"later":[1],"#, 1);
    scene.declare_text(None, Declaration { text, ..declared });
    scene.lead();
    assert_eq!(scene.next_at().as_deref(), Some("2026-05-02T03:00:00Z"));
}

#[test]
fn a_schedule_is_refused_by_its_name() {
    let refused = |schedule: &Schedule| declaration(schedule, &build("shop")).unwrap_err();
    insta::assert_snapshot!(
        [
            nightly("0 0 30 2 *"),
            nightly("").named("daily"),
            nightly("0 3 * * * Europe/Atlantis"),
            nightly("0 3 * * *").named(""),
            nightly("0 3 * * *").catch_up(CatchUp::All(0)),
            nightly("0 3 * * *").catch_up(CatchUp::All(1_001)),
        ]
        .iter()
        .map(refused)
        .collect::<Vec<_>>()
        .join("\n")
    );
}
