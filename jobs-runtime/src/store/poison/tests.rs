use std::collections::BTreeSet;

use super::call::{MOST_IN_A_ROW, MOST_TRIES};
use super::*;

const JOB: JobId = JobId(7);
const PRUNE: Operation = Operation::Prune;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Rows in the order in which a store finds them.
struct Table {
    poison: Poison,
    rows: Vec<i64>,
    refused: BTreeSet<i64>,
    tries: u32,
    /// The rows that the last call tried alone and in vain.
    alone: Vec<i64>,
    /// What a try takes.
    step: Duration,
    now: Duration,
}

impl Table {
    fn of(rows: i64, is_refused: impl Fn(i64) -> bool) -> Self {
        let rows: Vec<i64> = (0..rows).collect();
        let refused = rows.iter().copied().filter(|row| is_refused(*row)).collect();
        let (poison, step) = (Poison::default(), Duration::ZERO);
        Self { poison, rows, refused, tries: 0, alone: Vec::new(), step, now: at(100) }
    }

    /// Deletes rows in halves, as the stores do; answers which, or the words about the last that failed.
    fn delete(&mut self, limit: u32, over_at: Duration) -> Result<Vec<i64>, String> {
        let Self { poison, rows, refused, tries, alone, step, now } = self;
        let mut deleted = Vec::new();
        let mut call = poison.call(PRUNE, limit).until(over_at);
        (*tries, *alone) = (0, Vec::new());
        while let Some(most) = call.look(*now) {
            let met = rows.iter().take(most as usize).map(|row| (JobId(*row), *row)).collect();
            for chosen in call.choose(met, *now) {
                let with_job = |row| (JobId(row), row);
                let mut halves = Halves::of(chosen.into_iter().map(with_job).collect());
                while let Some(part) = call.next(&mut halves, *now) {
                    *tries += 1;
                    *now += *step;
                    if part.iter().any(|(_, row)| refused.contains(row)) {
                        if let [(_, row)] = part[..] {
                            alone.push(row);
                        }
                        call.failed(&mut halves, part, ("refused".to_owned(), "no"), *now);
                        continue;
                    }
                    rows.retain(|row| !part.iter().any(|(_, written)| written == row));
                    deleted.extend(part.iter().map(|(_, row)| *row));
                    call.written(part.iter().map(|(job, _)| *job), part.len());
                }
            }
        }
        let count = call.end()?;
        assert_eq!(count as usize, deleted.len());
        Ok(deleted)
    }

    fn delete_all(&mut self) -> Result<Vec<i64>, String> {
        self.delete(1_000, Duration::MAX)
    }

    fn left(&self) -> Vec<i64> {
        self.rows.clone()
    }
}

#[test]
fn all_but_the_rows_at_fault_are_written_in_order() {
    let mut table = Table::of(1_000, |row| row == 700);
    let expected: Vec<i64> = (0..1_000).filter(|row| *row != 700).collect();
    assert_eq!(table.delete_all(), Ok(expected));
    assert_eq!(table.left(), [700]);
    assert!(table.tries <= 21, "{} tries", table.tries);
    assert_eq!(Table::of(0, |_| true).delete_all(), Ok(vec![]));
    assert_eq!(Table::of(1, |_| true).delete_all(), Ok(vec![]));
    let mut table = Table::of(100, |row| row % 2 == 0);
    assert_eq!(table.delete_all().map(|rows| rows.len()), Ok(50));
}

#[test]
fn as_many_are_written_as_were_asked_for() {
    let mut table = Table::of(20, |row| row % 5 == 0);
    assert_eq!(table.delete(8, Duration::MAX), Ok(vec![1, 2, 3, 4, 6, 7, 8, 9]));
    assert_eq!(table.delete(3, Duration::MAX), Ok(vec![11, 12, 13]));
    assert_eq!(table.delete(0, Duration::MAX), Ok(vec![]));
}

#[test]
fn where_all_fail_it_is_soon_given_up() {
    let mut table = Table::of(1_000, |_| true);
    assert_eq!(table.delete_all(), Err("refused".to_owned()));
    assert!(table.tries <= 30, "{} tries", table.tries);
    assert_eq!(table.poison.known(PRUNE, table.now), MOST_IN_A_ROW + 1);
}

/// Who knows them has told them.
#[test]
fn rows_that_fail_again_are_no_error() {
    let mut table = Table::of(9, |_| true);
    assert_eq!(table.delete_all(), Err("refused".to_owned()));
    table.now += at(60);
    assert_eq!(table.delete_all(), Ok(vec![]));
}

#[test]
fn however_many_refused_rows_stand_before_others_all_others_are_written() {
    for refused in [7, 8, 20, 900, 2_000] {
        let mut table = Table::of(refused + 100, |row| row < refused);
        let mut calls = 0;
        while table.left().len() > table.refused.len() {
            drop(table.delete(50, Duration::MAX));
            table.now += at(60);
            calls += 1;
            assert!(calls <= 30, "{refused} refused rows, {} left", table.left().len());
        }
    }
}

/// Where the last row that is looked at is refused too.
#[test]
fn refused_rows_before_and_behind_hold_up_none_between() {
    let is_refused = |row| !(60..160).contains(&row);
    let mut table = Table::of(220, is_refused);
    for _ in 0..12 {
        drop(table.delete_all());
        table.now += at(60);
    }
    assert_eq!(table.left(), (0..220).filter(|row| is_refused(*row)).collect::<Vec<_>>());
}

#[test]
fn every_row_that_is_known_has_its_turn() {
    let mut table = Table::of(100, |_| true);
    for _ in 0..12 {
        drop(table.delete_all());
        table.now += at(60);
    }
    assert_eq!(
        table.poison.known(PRUNE, table.now),
        100,
        "those that still stand are not forgotten"
    );
    table.refused.remove(&40);
    table.refused.remove(&60);
    for _ in 0..12 {
        drop(table.delete_all());
        table.now += at(60);
    }
    assert_eq!(table.left().len(), 98);
}

#[test]
fn a_call_ends_where_no_more_rows_are_kept_in_mind() {
    for most_known in [0, 1, 3] {
        for refused in [1, 3, 5, 9] {
            let mut table = Table::of(100, |row| row % 10 == 0 && row / 10 < refused);
            table.poison = Poison::of_most(most_known);
            let mut written = 0;
            for _ in 0..3 {
                written += table.delete(30, Duration::MAX).map_or(0, |rows| rows.len());
                let again = |row| table.alone.iter().filter(|other| *other == row).count();
                assert!(table.alone.iter().all(|row| again(row) <= 4), "{:?}", table.alone);
                assert!(table.poison.known(PRUNE, table.now) as usize <= most_known);
                table.now += at(60);
            }
            // What is not kept in mind is looked at with all others, and counts among them.
            let least = 90.min(100 - table.refused.len()) - 3 * table.refused.len();
            assert!(written >= least, "{written} of {least}");
        }
    }
}

#[test]
fn a_call_makes_so_many_tries_and_keeps_what_it_wrote() {
    let mut table = Table::of(2_000, |row| row % 2 == 0);
    let written = table.delete_all().expect("some are written").len();
    assert_eq!(table.tries, MOST_TRIES);
    assert!(written > 50, "{written}");
    for _ in 0..40 {
        drop(table.delete_all());
        table.now += at(1);
    }
    assert_eq!(table.left().len(), 1_000);
}

#[test]
fn where_all_its_tries_are_in_vain_a_call_says_so() {
    let mut table = Table::of(2_000, |_| true);
    for _ in 0..10 {
        assert_eq!(table.delete_all(), Err("refused".to_owned()));
    }
    assert_eq!(table.tries, MOST_TRIES);
}

#[test]
fn a_call_that_others_wait_for_ends_once_it_has_something_to_show() {
    let mut table = Table::of(1_000, |row| row == 0);
    table.step = at(1);
    let over_at = table.now + at(5);
    assert_eq!(table.delete(1_000, over_at), Ok(vec![]), "row 0 is found after ten tries");
    assert_eq!((table.tries, table.poison.known(PRUNE, table.now)), (10, 1));
    let over_at = table.now + at(5);
    assert_eq!(table.delete(1_000, over_at).map(|rows| rows.len()), Ok(999));
    let mut table = Table::of(100, |_| true);
    drop(table.delete_all());
    (table.step, table.now) = (at(1), table.now + at(60));
    table.refused.retain(|row| table.poison.of(PRUNE).rows().contains_key(&JobId(*row)));
    table.rows.retain(|row| table.refused.contains(row));
    let over_at = table.now + at(1);
    assert_eq!(table.delete(1_000, over_at), Ok(vec![]));
    assert!(table.tries < 9, "one that fails again is something to show: {} tries", table.tries);
}

#[test]
fn a_row_is_passed_over_for_a_pause_that_doubles_up_to_a_minute() {
    let poison = Poison::default();
    let mut now = at(100);
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        poison.found(PRUNE, JOB, "no", now);
        assert_eq!(poison.first_free(PRUNE, [(JOB, ())], now), None, "{pause}");
        assert_eq!((poison.paused(PRUNE, now), poison.next_in(PRUNE, now)), (1, Some(at(pause))));
        now += at(pause);
        assert_eq!(poison.first_free(PRUNE, [(JOB, ())], now), Some(()));
        assert_eq!((poison.paused(PRUNE, now), poison.is_known(PRUNE)), (0, true));
    }
    assert_eq!(poison.first_free(PRUNE, [(JOB, 1), (JobId(8), 2)], Duration::ZERO), Some(2));
}

#[test]
fn a_row_is_known_for_what_could_not_be_done_to_it() {
    let poison = Poison::default();
    poison.found(PRUNE, JOB, "no", at(1));
    assert!(poison.is_known(PRUNE) && !poison.is_known(Operation::Promote));
    assert_eq!(poison.next_in(Operation::Promote, at(1)), None);
    assert_eq!(poison.first_free(Operation::Promote, [(JOB, ())], at(1)), Some(()));
    poison.cured(Operation::Promote, [JOB]);
    assert!(poison.is_known(PRUNE));
}

#[test]
fn nobody_comes_back_for_a_row_in_less_than_a_tenth_of_a_second() {
    let poison = Poison::default();
    poison.found(PRUNE, JOB, "no", at(1));
    let now = Duration::from_millis(1_990);
    assert_eq!(poison.next_in(PRUNE, now), Some(SOONEST));
}

#[test]
fn a_row_that_was_written_or_not_met_for_long_is_forgotten() {
    let poison = Poison::default();
    poison.found(PRUNE, JOB, "no", at(1));
    poison.cured(PRUNE, [JOB]);
    assert!(!poison.is_known(PRUNE));
    poison.found(PRUNE, JOB, "no", at(1));
    assert_eq!(poison.known(PRUNE, at(121)), 1);
    poison.sort(PRUNE, vec![(JOB, ())], at(121));
    assert_eq!(poison.known(PRUNE, at(240)), 1, "it still stands there");
    assert_eq!((poison.known(PRUNE, at(241)), poison.is_known(PRUNE)), (0, false));
    assert_eq!(poison.next_in(PRUNE, at(1)), None);
}
