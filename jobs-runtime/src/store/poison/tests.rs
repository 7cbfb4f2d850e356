use super::*;

/// Writes rows in halves where some can't be written; answers those that were, those that were not, and how
/// many parts were tried.
fn write(rows: u32, is_poison: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<u32>, usize) {
    let mut halves = Halves::of((0..rows).collect());
    let (mut written, mut poison, mut tries) = (Vec::new(), Vec::new(), 0);
    while let Some(part) = halves.next() {
        tries += 1;
        if part.iter().any(|row| is_poison(*row)) {
            poison.extend(halves.failed(part));
        } else {
            halves.written();
            written.extend(part);
        }
    }
    (written, poison, tries)
}

#[test]
fn all_but_the_rows_at_fault_are_written_in_order() {
    let (written, poison, tries) = write(1_000, |row| row == 700);
    assert_eq!(poison, [700]);
    assert_eq!(written, (0..1_000).filter(|row| *row != 700).collect::<Vec<_>>());
    assert!(tries <= 21, "{tries} tries");
    assert_eq!(write(1, |_| true), (vec![], vec![0], 1));
    assert_eq!(write(0, |_| true), (vec![], vec![], 0));
    let (written, poison, _) = write(100, |row| row % 2 == 0);
    assert_eq!((written.len(), poison.len()), (50, 50));
}

#[test]
fn where_all_fail_it_is_soon_given_up() {
    let (written, poison, tries) = write(1_000, |_| true);
    assert_eq!((written.len(), poison.len()), (0, MOST_IN_A_ROW));
    assert!(tries <= 30, "{tries} tries");
}

const JOB: JobId = JobId(7);

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_row_is_passed_over_for_a_pause_that_doubles_up_to_a_minute() {
    let poison = Poison::default();
    let mut now = at(100);
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        poison.found(JOB, "promote", "no", now);
        assert!(poison.is_paused(JOB, now), "{pause}");
        assert_eq!(poison.next_in(now), Some(at(pause)));
        now += at(pause);
        assert!(!poison.is_paused(JOB, now));
        assert_eq!((poison.paused(now), poison.is_known()), (0, true));
    }
    assert!(!poison.is_paused(JobId(8), now));
}

#[test]
fn a_row_that_was_written_or_not_met_for_long_is_forgotten() {
    let poison = Poison::default();
    poison.found(JOB, "promote", "no", at(1));
    poison.cured([JOB]);
    assert!(!poison.is_known());
    poison.found(JOB, "promote", "no", at(1));
    assert_eq!((poison.paused(at(122)), poison.is_known()), (0, false));
    assert_eq!(poison.next_in(at(1)), None);
}
