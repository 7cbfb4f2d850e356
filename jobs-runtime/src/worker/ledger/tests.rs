use jobs_core::ClaimNumber;

use super::*;

fn fence(job: i64, claim: i64) -> Fence {
    Fence { job: JobId(job), claim: ClaimNumber(claim) }
}

fn held(job: i64, claim: i64) -> Held {
    Held { fence: fence(job, claim), is_cancel_requested: false }
}

fn begin(ledger: &Ledger, job: i64, claim: i64) -> Entry {
    let run = (fence(job, claim), "a.b".into());
    ledger.begin(std::iter::once(run)).pop().expect("one run has one entry")
}

#[test]
fn a_slot_is_free_when_its_handler_has_ended_and_settlements_are_bounded() {
    let ledger = Ledger::new(2);
    let runs = [begin(&ledger, 1, 1), begin(&ledger, 2, 1)];
    assert_eq!(ledger.free(), 0);
    for run in &runs {
        ledger.ended(run);
    }
    assert_eq!((ledger.free(), ledger.held(), ledger.running()), (2, 2, 0));
    for job in 3..=4 {
        ledger.ended(&begin(&ledger, job, 1));
    }
    assert_eq!(ledger.free(), 0, "two batches of settlements wait");
    ledger.settled([fence(1, 1), fence(2, 1)].into_iter());
    assert_eq!(ledger.free(), 2);
}

#[test]
fn two_runs_of_one_job_hold_two_slots_until_each_has_ended() {
    let ledger = Ledger::new(2);
    let (earlier, later) = (begin(&ledger, 1, 1), begin(&ledger, 1, 3));
    assert_eq!((ledger.running(), ledger.running_fences().len()), (2, 2));
    for _ in 0..2 {
        ledger.ended(&earlier);
        ledger.settled(std::iter::once(fence(1, 1)));
        assert_eq!((ledger.running(), ledger.held()), (1, 1), "a late end frees no slot twice");
    }
    ledger.ended(&later);
    assert_eq!(ledger.running(), 0);
}

#[test]
fn a_stray_is_given_back_at_the_second_audit() {
    let ledger = Ledger::new(4);
    begin(&ledger, 1, 1);
    let answer = [held(1, 1), held(2, 7)];
    assert_eq!(ledger.audit(&answer, ledger.asked()), Findings::default());
    assert_eq!(ledger.audit(&answer, ledger.asked()).strays, [fence(2, 7)]);
}

#[test]
fn a_stray_of_an_unanswered_claim_is_left_alone() {
    let ledger = Ledger::new(4);
    ledger.claim_sent();
    let asked = ledger.asked();
    for _ in 0..3 {
        assert_eq!(ledger.audit(&[held(2, 7)], asked), Findings::default());
    }
    ledger.claim_answered();
    ledger.audit(&[held(2, 7)], asked);
    assert_eq!(ledger.audit(&[held(2, 7)], asked).strays, [fence(2, 7)]);
}

#[test]
fn a_run_that_the_store_does_not_hold_is_aborted_unless_it_is_being_settled() {
    let ledger = Ledger::new(4);
    let lost = begin(&ledger, 1, 1);
    let taken = begin(&ledger, 2, 1);
    let settling = begin(&ledger, 3, 1);
    ledger.claim_answered();
    ledger.ended(&settling);
    let mut found = ledger.audit(&[held(2, 2)], ledger.asked()).lost;
    found.sort();
    assert_eq!(found, [JobId(1), JobId(2)]);
    assert!(lost.signals.aborted().is_cancelled() && taken.signals.aborted().is_cancelled());
    assert!(!settling.signals.aborted().is_cancelled());
}

#[test]
fn a_run_whose_claim_was_answered_after_the_store_was_asked_is_not_lost() {
    let ledger = Ledger::new(4);
    let asked = ledger.asked();
    ledger.claim_sent();
    let young = begin(&ledger, 1, 1);
    ledger.claim_answered();
    assert_eq!(ledger.audit(&[], asked), Findings::default());
    assert!(!young.signals.aborted().is_cancelled());
    assert_eq!(ledger.audit(&[], ledger.asked()).lost, [JobId(1)]);
}

#[test]
fn a_cancel_asks_first_and_aborts_at_the_next_audit() {
    let ledger = Ledger::new(4);
    let entry = begin(&ledger, 1, 1);
    let cancelled = Held { is_cancel_requested: true, ..held(1, 1) };
    ledger.audit(&[cancelled], ledger.asked());
    assert_eq!(entry.signals.reason(), Some(Reason::Cancel));
    assert!(!entry.signals.aborted().is_cancelled());
    ledger.audit(&[cancelled], ledger.asked());
    assert!(entry.signals.aborted().is_cancelled());
}
