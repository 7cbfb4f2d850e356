use super::*;

const NOW: Duration = Duration::from_secs(1_000);

fn seen() -> Suspects {
    let mut suspects = Suspects::new(Lease::default());
    suspects.looked(NOW, true);
    suspects
}

fn after(span: u64) -> Duration {
    NOW + Duration::from_secs(span)
}

#[test]
fn without_suspects_nothing_changes() {
    let mut suspects = seen();
    suspects.looked(after(59), false);
    for held in [0, 5] {
        assert_eq!(suspects.plan(after(1_000), held, true), Plan::Apart);
        assert_eq!(suspects.plan(after(1_000), held, false), Plan::Apart);
    }
    suspects.looked(after(1_000), true);
    assert_eq!(suspects.plan(after(1_059), 0, true), Plan::Apart, "the wait is counted anew");
}

#[test]
fn a_worker_with_nothing_else_to_do_runs_a_suspect_at_once() {
    assert_eq!(seen().plan(NOW, 0, false), Plan::Alone);
    assert_eq!(seen().plan(NOW, 1, false), Plan::Apart);
    assert_eq!(seen().plan(NOW, 0, true), Plan::Apart);
}

#[test]
fn a_suspect_that_waited_a_minute_gets_a_worker_to_itself_and_after_five_runs_anyway() {
    let mut suspects = seen();
    assert_eq!(suspects.plan(after(59), 3, true), Plan::Apart);
    for second in [60, 299] {
        suspects.looked(after(second), true);
        assert_eq!(suspects.plan(after(second), 3, true), Plan::Clear);
        assert_eq!(suspects.plan(after(second), 0, true), Plan::Alone);
    }
    for held in [0, 3] {
        assert_eq!(suspects.plan(after(300), held, true), Plan::Beside);
    }
}

#[test]
fn nothing_is_claimed_beside_a_suspect_however_long_it_runs() {
    let mut suspects = seen();
    suspects.started();
    suspects.looked(after(1), false);
    assert_eq!(suspects.plan(after(10_000), 1, true), Plan::Clear);
}
