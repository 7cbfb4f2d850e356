use super::*;
use crate::id::{ClaimNumber, JobId};
use crate::version::Refusal;

const DRAW: u64 = u64::MAX / 2;

fn run(counters: Counters) -> Run {
    let fence = Fence { job: JobId(7), claim: ClaimNumber(3) };
    let budget = Budget { max_failures: 3, max_interruptions: None };
    Run { fence, counters, budget, refused: None }
}

fn settle(counters: Counters, ending: &Ending) -> Settlement {
    transition(&run(counters), ending, &Ladder::Fixed(Duration::from_secs(9)), DRAW)
}

fn failure(retry: Retry) -> Ending {
    Ending::Failed(Failure { class: "error".into(), text: "no".into(), retry })
}

fn wait(settlement: &Settlement) -> Duration {
    match settlement.due {
        Due::In(wait) => wait,
        other => panic!("expected a wait, got {other:?}"),
    }
}

const NONE: Counters =
    Counters { failures: 0, interruptions: 0, crashes: 0, refusals: 0, snoozes: 0 };

#[test]
fn a_success_counts_nothing_and_writes_no_event() {
    let settlement = settle(NONE, &Ending::Done);
    assert_eq!(settlement.state, State::Succeeded);
    assert_eq!((settlement.counters, settlement.event), (NONE, None));
}

#[test]
fn a_failure_waits_for_the_ladder_until_the_budget_is_spent() {
    let first = settle(NONE, &failure(Retry::Ladder));
    assert_eq!((first.state, first.counters.failures), (State::Scheduled, 1));
    assert!(wait(&first).abs_diff(Duration::from_secs(9)) < Duration::from_millis(1));
    let last = settle(Counters { failures: 2, ..NONE }, &failure(Retry::Ladder));
    assert_eq!((last.state, last.counters.failures), (State::Dead, 3));
    assert_eq!(last.error.unwrap().class, "error");
}

#[test]
fn a_permanent_failure_is_dead_at_once() {
    let settlement = settle(NONE, &failure(Retry::Never));
    assert_eq!((settlement.state, settlement.counters.failures), (State::Dead, 1));
}

#[test]
fn retry_in_sets_the_wait_but_not_the_budget() {
    let wait_for = Retry::After(Duration::from_secs(77));
    assert_eq!(wait(&settle(NONE, &failure(wait_for))), Duration::from_secs(77));
    let last = settle(Counters { failures: 2, ..NONE }, &failure(wait_for));
    assert_eq!(last.state, State::Dead);
}

#[test]
fn a_snooze_counts_apart_and_resets_the_crashes() {
    let before = Counters { failures: 2, crashes: 4, ..NONE };
    let settlement = settle(before, &Ending::Snoozed(Duration::from_secs(5)));
    assert_eq!(settlement.state, State::Scheduled);
    assert_eq!(settlement.counters, Counters { failures: 2, snoozes: 1, ..NONE });
    let now = settle(before, &Ending::Snoozed(Duration::ZERO));
    assert_eq!(now.state, State::Ready);
}

#[test]
fn a_stop_gives_the_job_back_to_its_place_as_an_interruption() {
    for interruption in [Interruption::Stopped("drain".into()), Interruption::GivenUp] {
        let settlement = settle(NONE, &Ending::Interrupted(interruption));
        assert_eq!((settlement.state, settlement.due), (State::Ready, Due::Unchanged));
        assert_eq!(settlement.counters, Counters { interruptions: 1, ..NONE });
    }
}

#[test]
fn an_absent_database_backs_off_without_a_failure() {
    let ending = Ending::Interrupted(Interruption::Infrastructure("away".into()));
    let waits = [0, 1, 2, 20].map(|interruptions| {
        let settlement = settle(Counters { interruptions, ..NONE }, &ending);
        assert_eq!((settlement.state, settlement.counters.failures), (State::Scheduled, 0));
        wait(&settlement).as_millis().div_ceil(1000)
    });
    assert_eq!(waits, [2, 4, 8, 300]);
}

#[test]
fn a_claim_that_never_started_counts_nothing() {
    let settlement = settle(NONE, &Ending::Unstarted);
    assert_eq!((settlement.state, settlement.counters), (State::Ready, NONE));
    assert_eq!((settlement.due, settlement.event), (Due::Unchanged, None));
}

#[test]
fn a_crash_is_an_interruption_and_the_fifth_in_a_row_is_deadly_if_it_was_alone() {
    let mut counters = NONE;
    for crash in 1..MAX_CRASHES {
        let settlement = settle(counters, &Ending::Crashed(Company::Alone));
        assert!(settlement.state.is_waiting(), "crash {crash}");
        counters = settlement.counters;
        assert_eq!((counters.crashes, counters.interruptions), (crash, crash));
    }
    let beside = settle(counters, &Ending::Crashed(Company::Others));
    assert_eq!((beside.state, beside.counters.crashes), (State::Scheduled, MAX_CRASHES));
    let last = settle(beside.counters, &Ending::Crashed(Company::Alone));
    assert_eq!((last.state, last.counters.failures), (State::Dead, 0));
    assert_eq!(last.error.unwrap().class, "crash_loop");
}

#[test]
fn a_refusal_comes_back_after_two_seconds_and_is_told_once_per_build() {
    let ending = |build: &str| Ending::Refused {
        refusal: Refusal::Newer,
        build: build.into(),
        text: "2.1.0 here 2.0".into(),
    };
    let first = settle(NONE, &ending("old"));
    assert_eq!((first.state, first.counters), (State::Scheduled, Counters { refusals: 1, ..NONE }));
    assert!(wait(&first).abs_diff(RELEASE_DELAY) < Duration::from_millis(1));
    assert_eq!(first.event.as_ref().unwrap().class, "newer");
    let again = Run { refused: first.refused.clone(), ..run(first.counters) };
    let ladder = Ladder::default();
    assert_eq!(transition(&again, &ending("old"), &ladder, DRAW).event, None);
    assert!(transition(&again, &ending("other"), &ladder, DRAW).event.is_some());
}

#[test]
fn what_cannot_be_read_is_dead_and_only_bytes_count_as_a_failure() {
    let bytes =
        Failure { class: "malformed_payload".into(), text: "x".into(), retry: Retry::Ladder };
    let settlement = settle(NONE, &Ending::Unreadable(bytes));
    assert_eq!((settlement.state, settlement.counters.failures), (State::Dead, 1));
    for ending in [Ending::Expired, Ending::Retired, Ending::MalformedVersion("?".into())] {
        let settlement = settle(NONE, &ending);
        assert_eq!((settlement.state, settlement.counters), (State::Dead, NONE));
    }
}

#[test]
fn interruptions_kill_only_where_the_job_asks_for_it() {
    let many = Counters { interruptions: 1_000_000, ..NONE };
    let ending = Ending::Interrupted(Interruption::GivenUp);
    let delayed = settle(many, &ending);
    assert_eq!(delayed.state, State::Scheduled);
    assert!(wait(&delayed) <= Duration::from_mins(66));
    let mut strict = run(many);
    strict.budget.max_interruptions = Some(10);
    let dead = transition(&strict, &ending, &Ladder::default(), DRAW);
    assert_eq!((dead.state, dead.error.unwrap().class.as_str()), (State::Dead, "interrupted"));
}

#[test]
fn counters_saturate() {
    let full = Counters {
        failures: COUNTER_MAX,
        interruptions: COUNTER_MAX,
        crashes: COUNTER_MAX,
        refusals: COUNTER_MAX,
        snoozes: COUNTER_MAX,
    };
    for ending in [
        failure(Retry::Ladder),
        Ending::Snoozed(Duration::ZERO),
        Ending::Crashed(Company::Others),
        Ending::Interrupted(Interruption::GivenUp),
        Ending::Refused { refusal: Refusal::Older, build: String::new(), text: String::new() },
    ] {
        let Counters { failures, interruptions, crashes, refusals, snoozes } =
            settle(full, &ending).counters;
        for counter in [failures, interruptions, crashes, refusals, snoozes] {
            assert!(counter == COUNTER_MAX || counter == 0, "{ending:?}");
        }
    }
}

#[test]
fn every_transition_is_a_legal_edge() {
    let endings = [
        Ending::Done,
        failure(Retry::Never),
        Ending::Snoozed(Duration::from_secs(1)),
        Ending::Crashed(Company::Others),
        Ending::Unstarted,
        Ending::Expired,
        Ending::Retired,
    ];
    for ending in &endings {
        let state = settle(NONE, ending).state;
        assert!(State::Running.next().contains(&state), "{ending:?} leads to {state}");
    }
}

#[test]
fn a_text_is_cut_in_the_middle_and_cleaned_of_nul() {
    assert_eq!(storable("a\0b", 10), "a\u{FFFD}b");
    let long = format!("start{}end", "é".repeat(100_000));
    let cut = storable(&long, MAX_ERROR_BYTES);
    assert!(cut.len() <= MAX_ERROR_BYTES && cut.len() > MAX_ERROR_BYTES - 16, "{}", cut.len());
    assert!(cut.starts_with("start") && cut.ends_with("end"));
}

#[test]
fn no_handler_parks_its_job_for_ever() {
    let ladder = Duration::from_secs(9);
    let is_the_ladders =
        |settlement: &Settlement| wait(settlement).abs_diff(ladder) < Duration::from_millis(1);
    for endless in [MAX_WAIT + Duration::from_nanos(1), Duration::MAX] {
        let snoozed = settle(NONE, &Ending::Snoozed(endless));
        assert!(is_the_ladders(&snoozed), "{snoozed:?}");
        assert_eq!((snoozed.counters.failures, snoozed.counters.snoozes), (1, 0));
        let note = snoozed.error.unwrap();
        assert_eq!(note.class, WAIT_TOO_LONG);
        assert!(note.text.contains("the longest wait is 3650"), "{}", note.text);
        let failed = settle(NONE, &failure(Retry::After(endless)));
        assert!(is_the_ladders(&failed), "{failed:?}");
        let note = failed.error.unwrap();
        assert_eq!(note.class, "error", "the failure is told as what it was");
        assert!(note.text.starts_with("no (it asked for a retry after "), "{}", note.text);
        let fixed = transition(&run(NONE), &failure(Retry::Ladder), &Ladder::Fixed(endless), DRAW);
        assert!(wait(&fixed) <= MAX_WAIT, "{fixed:?}");
    }
    assert_eq!(wait(&settle(NONE, &Ending::Snoozed(MAX_WAIT))), MAX_WAIT);
    assert_eq!(wait(&settle(NONE, &failure(Retry::After(MAX_WAIT)))), MAX_WAIT);
}

#[test]
fn only_its_own_snooze_brings_a_run_at_most_once_another() {
    let policy = crate::Policy { on_stop: crate::OnStop::AtMostOnce, ..crate::Policy::DEFAULT };
    let run = Run { budget: policy.budget(), ..run(NONE) };
    let end = |ending: &Ending| transition(&run, ending, &Ladder::default(), DRAW).state;
    let stopped = Ending::Interrupted(Interruption::Stopped(String::new()));
    let infrastructure = Ending::Interrupted(Interruption::Infrastructure(String::new()));
    let given_up = Ending::Interrupted(Interruption::GivenUp);
    let crashed = Ending::Crashed(Company::Others);
    for ending in [failure(Retry::Ladder), stopped, infrastructure, given_up, crashed] {
        assert_eq!(end(&ending), State::Dead, "{ending:?}");
    }
    assert_eq!(end(&Ending::Snoozed(Duration::from_secs(1))), State::Scheduled);
}

#[test]
fn the_wait_for_infrastructure_doubles_with_every_interruption_since_the_job_got_on() {
    let away = Ending::Interrupted(Interruption::Infrastructure(String::new()));
    for (before, seconds) in [(0, 2), (1, 4), (3, 16), (7, 256), (8, 300), (90, 300)] {
        let settlement = settle(Counters { interruptions: before, ..NONE }, &away);
        let exact = Duration::from_secs(seconds);
        assert!(wait(&settlement).abs_diff(exact) < Duration::from_millis(1), "{before}");
    }
}
