use std::os::unix::ffi::OsStringExt;

use super::*;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn of(
    stated: Stated,
    variables: &[(&str, &str)],
    by_systemd: Option<Duration>,
) -> Result<Budget, String> {
    let variable = |wanted: &str| {
        let found = variables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| (*text).to_owned())
    };
    Budget::of(stated, variable, by_systemd).map_err(|error| error.to_string())
}

#[test]
fn the_grace_period_is_the_first_that_anyone_states() {
    let variable = (GRACE_VARIABLE, "45s");
    let stated = Stated { grace: Some(seconds(20)), pre_stop: None };
    let budget = |stated, variables: &[_], by_systemd| {
        let budget = of(stated, variables, by_systemd).unwrap();
        (budget.drain(), budget.source)
    };
    let systemd = Some(seconds(90));
    assert_eq!(budget(stated, &[variable], systemd), (seconds(20), Source::Builder));
    let silent = Stated::default();
    assert_eq!(budget(silent, &[variable], systemd), (seconds(45), Source::Variable));
    assert_eq!(budget(silent, &[], systemd), (seconds(90), Source::Systemd));
    assert_eq!(budget(silent, &[], None), (seconds(30), Source::Default));
}

#[test]
fn a_pre_stop_delay_is_taken_off() {
    let stated = Stated { grace: Some(seconds(20)), pre_stop: Some(seconds(5)) };
    assert_eq!(of(stated, &[], None).unwrap().drain(), seconds(15));
    let variables = [(GRACE_VARIABLE, "1min"), (PRE_STOP_VARIABLE, "1500ms")];
    let budget = of(Stated::default(), &variables, None).unwrap();
    assert_eq!(budget.drain(), Duration::from_millis(58_500));
    let day = of(Stated::default(), &[(GRACE_VARIABLE, "1d")], None).unwrap();
    assert_eq!(day.drain(), seconds(86_400));
}

#[test]
fn what_can_not_be_used_is_refused_with_its_reason() {
    let silent = Stated::default();
    for text in ["", "soon", "-5", "1.5s", "30 fortnights", "99999999999"] {
        let error = of(silent, &[(GRACE_VARIABLE, text)], None).unwrap_err();
        assert!(error.contains(GRACE_VARIABLE) && error.contains(text), "{error}");
    }
    let no_text = readable(OsString::from_vec(b"30\xff".to_vec()));
    let error = of(silent, &[(GRACE_VARIABLE, &no_text)], None).unwrap_err();
    assert!(error.contains(GRACE_VARIABLE), "{error}");
    let error = of(silent, &[(GRACE_VARIABLE, "100ms")], None).unwrap_err();
    assert!(error.contains("from JOBS_GRACE_PERIOD, is not one of 1 s to 24 h"), "{error}");
    let error = of(silent, &[(PRE_STOP_VARIABLE, "30")], None).unwrap_err();
    assert!(error.contains("leaves less than 1 s of a grace period of 30s"), "{error}");
}

#[test]
fn a_time_out_that_the_budget_can_not_hold_needs_a_longer_one() {
    let budget = of(Stated::default(), &[], None).unwrap();
    assert_eq!(budget.needed(seconds(24)), None);
    let needed = budget.needed(seconds(60)).unwrap();
    let stated = Stated { grace: Some(needed), pre_stop: None };
    assert_eq!(of(stated, &[], None).unwrap().needed(seconds(60)), None);
    assert!(needed <= seconds(76), "{needed:?}");
    assert_eq!(
        budget.needed(Duration::MAX),
        Some(seconds(u64::MAX)),
        "as a policy by hand may say"
    );
}
