use std::fmt::Write as _;

use super::*;
use crate::random::{Random, SeededRandom, below};

const GRACE: Duration = Duration::from_secs(30);

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn draining() -> Drain {
    let mut drain = Drain::new(Split::of(GRACE));
    drain.step(at(0.0), Event::Held(1));
    drain.step(at(0.0), Event::Stop);
    drain
}

#[test]
fn thirty_seconds_are_split_as_documented() {
    let split = Split::of(GRACE);
    assert_eq!(
        (split.quiet, split.interrupting, split.releasing, split.exit),
        (at(24.0), at(27.5), at(29.0), at(29.5))
    );
}

#[test]
fn each_step_of_a_short_grace_period_is_long_enough_for_a_busy_machine() {
    for grace_ms in (1_000..120_000).step_by(50) {
        let grace = Duration::from_millis(grace_ms);
        let Split { quiet, interrupting, releasing, exit } = Split::of(grace);
        let share = |of_300: u32| grace * of_300 / 300;
        let least = (grace / 10).min(Duration::from_millis(500));
        for (from, to, of_300) in [
            (quiet, interrupting, 35),
            (interrupting, releasing, 15),
            (releasing, exit, 5),
            (exit, grace, 5),
        ] {
            assert!(
                to.saturating_sub(from) >= share(of_300).max(least),
                "{grace:?}: {from:?} to {to:?}"
            );
        }
        assert!(quiet * 2 > grace, "{grace:?}: most of it is for finishing");
    }
}

#[test]
fn a_grace_period_for_a_length_holds_it_and_none_that_is_shorter_does() {
    for quiet_ms in (600..200_000).step_by(25) {
        let quiet = Duration::from_millis(quiet_ms);
        let grace = Split::grace_for(quiet);
        let near = Duration::from_millis(1);
        assert!(Split::of(grace + near).quiet >= quiet, "{quiet:?} in {grace:?}");
        assert!(Split::of(grace.saturating_sub(near)).quiet < quiet, "{quiet:?} in {grace:?}");
    }
    assert_eq!(Split::grace_for(Duration::MAX), Duration::MAX);
}

#[test]
fn a_stop_closes_the_intake_first() {
    let mut drain = Drain::new(Split::of(GRACE));
    let actions = drain.step(at(5.0), Event::Stop);
    assert_eq!(
        actions,
        [Action::Enter(Phase::Quiet), Action::CloseIntake, Action::WakeAt(at(29.0))]
    );
}

#[test]
fn done_needs_an_empty_hand_and_a_closed_intake() {
    let mut drain = draining();
    assert_eq!(drain.step(at(1.0), Event::Held(0)), []);
    assert!(drain.step(at(1.0), Event::IntakeClosed).contains(&Action::CloseWorker));

    let mut drain = draining();
    assert_eq!(drain.step(at(1.0), Event::IntakeClosed), []);
    assert!(drain.step(at(1.0), Event::Held(0)).contains(&Action::CloseWorker));
}

#[test]
fn time_alone_moves_it_to_the_exit() {
    let mut drain = draining();
    assert_eq!(drain.step(at(23.9), Event::Tick), []);
    assert!(drain.step(at(24.0), Event::Tick).contains(&Action::AskHandlers));
    assert!(drain.step(at(27.5), Event::Tick).contains(&Action::AbortHandlers));
    assert!(drain.step(at(29.0), Event::Tick).contains(&Action::CloseWorker));
    assert_eq!(drain.step(at(29.4), Event::Tick), []);
    assert_eq!(drain.step(at(29.5), Event::Tick), [Action::Exit]);
}

#[test]
fn a_second_signal_moves_on_one_phase() {
    let mut drain = draining();
    for phase in [Phase::Interrupting, Phase::Releasing, Phase::Done] {
        drain.step(at(0.1), Event::Stop);
        assert_eq!(drain.phase(), phase);
    }
}

/// What every event leads to in every phase, in every state of the hand.
#[test]
fn the_whole_table_is_as_reviewed() {
    let mut table = String::new();
    let early = [
        ("stop", Event::Stop),
        ("intake closed", Event::IntakeClosed),
        ("held 0", Event::Held(0)),
        ("held 2", Event::Held(2)),
        ("tick", Event::Tick),
    ];
    for phase in Phase::ALL {
        for (held, is_intake_closed) in [(2, false), (2, true), (0, false), (0, true)] {
            let intake = if is_intake_closed { "closed" } else { "open" };
            let (name, split) = (phase.as_str(), Split::of(GRACE));
            writeln!(table, "{name}, {held} held, intake {intake}").unwrap();
            let begun = Drain { phase, split, stopped_at: at(0.0), held, is_intake_closed };
            let late = ("tick at its end", Event::Tick);
            for (what, event) in early.into_iter().chain([late]) {
                let mut drain = begun.clone();
                let now = if what == late.0 { begun.phase_ends_at() } else { at(0.0) };
                let actions = drain.step(now, event);
                writeln!(table, "  {what:<16} {:<13} {actions:?}", drain.phase().as_str()).unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn random_events_never_move_it_back_nor_past_its_bounds() {
    for seed in 0..10_000 {
        let random = SeededRandom::new(seed);
        let mut drain = Drain::new(Split::of(GRACE));
        let (mut now, mut stopped_at) = (Duration::ZERO, None);
        for _ in 0..40 {
            now += Duration::from_millis(below(random.draw(), 3_000));
            let event = match below(random.draw(), 8) {
                0 => Event::Stop,
                1 => Event::IntakeClosed,
                2 | 3 => Event::Held(usize::try_from(below(random.draw(), 3)).unwrap()),
                _ => Event::Tick,
            };
            let before = drain.phase();
            if event == Event::Stop && before == Phase::Working {
                stopped_at = Some(now);
            }
            let actions = drain.step(now, event);
            assert!(drain.phase() >= before, "seed {seed}");
            assert!(before != Phase::Working || stopped_at.is_some() || actions.is_empty());
            if before == drain.phase() && before != Phase::Working && event == Event::Tick {
                let is_late = stopped_at.is_some_and(|stop| now >= stop + GRACE);
                assert!(!is_late || actions == [Action::Exit], "seed {seed}");
            }
        }
    }
}
