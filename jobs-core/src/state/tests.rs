use super::*;
use crate::id::{ClaimNumber, Fence, JobId};
use crate::outcome::{Company, Ending, Failure, Interruption, MAX_CLASS_BYTES, Retry};
use crate::random::{Random, SeededRandom, below};
use crate::record::{Budget, COUNTER_MAX, Counters, RefusedBy};
use crate::retry::Ladder;
use crate::transition::{Run, transition};
use crate::version::Refusal;
use std::time::Duration;

#[test]
fn every_state_waits_runs_or_is_finished() {
    for state in State::ALL {
        let kinds = [state.is_waiting(), state == State::Running, state.is_finished()];
        assert_eq!(kinds.iter().filter(|is_it| **is_it).count(), 1, "{state}");
        assert_eq!(State::from_name(state.as_str()), Some(state));
    }
    assert_eq!(State::from_name("done"), None);
}

#[test]
fn every_state_is_reached_from_another() {
    for state in State::ALL {
        let from: Vec<_> =
            State::ALL.into_iter().filter(|from| from.next().contains(&state)).collect();
        assert!(!from.is_empty(), "{state}");
        assert!(!from.contains(&state), "{state} is no change");
    }
}

#[test]
fn what_waits_becomes_due_is_put_off_or_ends_without_a_run() {
    for state in State::ALL.into_iter().filter(|state| state.is_waiting()) {
        for next in [State::Dead, State::Cancelled] {
            assert!(state.next().contains(&next), "a {state} job may expire or be cancelled");
        }
    }
    assert!(State::Scheduled.next().contains(&State::Ready), "by a promotion");
    assert!(State::Ready.next().contains(&State::Scheduled), "by a reschedule");
}

#[test]
fn only_a_redrive_leaves_a_finished_state_and_success_is_for_ever() {
    for state in State::ALL.into_iter().filter(|state| state.is_finished()) {
        let expected: &[State] = if state == State::Succeeded { &[] } else { &[State::Ready] };
        assert_eq!(state.next(), expected, "{state}");
    }
}

/// A counter at, beside or far from what some rule compares it with.
fn counter(random: &SeededRandom) -> u32 {
    const CORNERS: [u32; 12] = [0, 1, 3, 4, 5, 19, 20, 99, 100, 101, COUNTER_MAX - 1, COUNTER_MAX];
    let corners = u64::try_from(CORNERS.len()).unwrap();
    CORNERS[usize::try_from(below(random.draw(), corners)).unwrap()]
}

fn span(random: &SeededRandom) -> Duration {
    const SPANS: [Duration; 4] =
        [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(9), Duration::MAX];
    SPANS[usize::try_from(below(random.draw(), 4)).unwrap()]
}

fn endings(wait: Duration) -> [Ending; 14] {
    let text = "x\0".repeat(MAX_CLASS_BYTES);
    let failure = |retry| Failure { class: text.clone(), text: text.clone(), retry };
    [
        Ending::Done,
        Ending::Failed(failure(Retry::Ladder)),
        Ending::Failed(failure(Retry::After(wait))),
        Ending::Failed(failure(Retry::Never)),
        Ending::Snoozed(wait),
        Ending::Unreadable(failure(Retry::Ladder)),
        Ending::Expired,
        Ending::Retired,
        Ending::MalformedVersion(text.clone()),
        Ending::Refused { refusal: Refusal::Older, build: "old".into(), text: text.clone() },
        Ending::Interrupted(Interruption::Stopped(text.clone())),
        Ending::Interrupted(Interruption::Infrastructure(text.clone())),
        Ending::Unstarted,
        Ending::Crashed(Company::Others),
    ]
}

#[test]
fn no_run_ends_anywhere_but_on_a_legal_edge() {
    let random = SeededRandom::new(1);
    for _ in 0..400 {
        let count = || counter(&random);
        let counters = Counters {
            failures: count(),
            interruptions: count(),
            crashes: count(),
            refusals: count(),
            snoozes: count(),
        };
        let max_interruptions = (count() > 4).then(count);
        let budget = Budget { max_failures: count().max(1), max_interruptions };
        let fence = Fence { job: JobId(1), claim: ClaimNumber(1) };
        let refused = Some(RefusedBy { reason: "older".into(), build: "old".into() });
        let run = Run { fence, counters, budget, refused };
        let ladder = Ladder::Exponential { first: span(&random), cap: span(&random) };
        for ending in endings(span(&random)) {
            let settlement = transition(&run, &ending, &ladder, random.draw());
            let what = format!("{run:?} {ending:.80?}");
            assert!(State::Running.next().contains(&settlement.state), "{what}");
            assert_eq!(settlement.fence, fence);
            let (before, after) = (counters, settlement.counters);
            assert!(after.failures >= before.failures && after.snoozes >= before.snoozes, "{what}");
            assert!(after.interruptions >= before.interruptions, "{what}");
            assert!(after.refusals >= before.refusals, "{what}");
            assert!(after.crashes >= before.crashes || after.crashes == 0, "{what}");
            if settlement.state == State::Dead {
                assert!(settlement.error.is_some() && settlement.event.is_some(), "{what}");
            }
            if let Some(note) = &settlement.error {
                assert!(note.class.len() <= MAX_CLASS_BYTES && !note.text.contains('\0'), "{what}");
            }
            if let Some(event) = &settlement.event {
                assert!(event.class.len() <= MAX_CLASS_BYTES && !event.class.contains('\0'));
            }
        }
    }
}
