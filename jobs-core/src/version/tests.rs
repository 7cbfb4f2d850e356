use super::*;

const LINES: &[Line] = &[Line { major: 1, minor: 4 }, Line { major: 3, minor: 2 }];

fn verdict(version: &str, min_reader: Option<&str>) -> Verdict {
    judge(Stamp::parse(version, min_reader).unwrap(), Reader::Reads(LINES))
}

#[test]
fn an_unknown_kind_is_refused() {
    let stamp = Stamp::parse("1.0.0", None).unwrap();
    assert_eq!(judge(stamp, Reader::Unknown), Verdict::Refuse(Refusal::UnknownKind));
}

#[test]
fn a_retired_kind_is_a_dead_letter() {
    let stamp = Stamp::parse("9.9.9", None).unwrap();
    assert_eq!(judge(stamp, Reader::Retired), Verdict::Retired);
}

#[test]
fn the_newest_line_runs_every_minor_it_knows() {
    for version in ["3.0.0", "3.1.7", "3.2.0", "3.2.99"] {
        assert_eq!(verdict(version, None), Verdict::Run, "{version}");
    }
}

#[test]
fn an_older_line_is_upcast() {
    for version in ["1.0.0", "1.4.9"] {
        assert_eq!(verdict(version, None), Verdict::Upcast { from: 1 }, "{version}");
    }
}

#[test]
fn a_newer_minor_runs_only_when_its_writer_vouched_for_this_reader() {
    assert_eq!(verdict("3.3.0", None), Verdict::Refuse(Refusal::Newer));
    assert_eq!(verdict("3.3.0", Some("3.3")), Verdict::Refuse(Refusal::Newer));
    assert_eq!(verdict("3.3.0", Some("3.2")), Verdict::TolerantRead { from: 3 });
    assert_eq!(verdict("3.9.0", Some("3.0")), Verdict::TolerantRead { from: 3 });
    assert_eq!(verdict("1.6.0", Some("1.4")), Verdict::TolerantRead { from: 1 });
    assert_eq!(verdict("1.6.0", None), Verdict::Refuse(Refusal::Newer));
}

#[test]
fn a_newer_major_is_refused() {
    assert_eq!(verdict("4.0.0", None), Verdict::Refuse(Refusal::Newer));
    assert_eq!(verdict("4.1.0", Some("4.0")), Verdict::Refuse(Refusal::Newer));
}

#[test]
fn a_major_without_a_line_is_older() {
    assert_eq!(verdict("2.0.0", None), Verdict::Refuse(Refusal::Older));
    let only_three = &[Line { major: 3, minor: 2 }];
    let stamp = Stamp::parse("1.0.0", None).unwrap();
    assert_eq!(judge(stamp, Reader::Reads(only_three)), Verdict::Refuse(Refusal::Older));
}

#[test]
fn a_version_that_is_not_three_plain_numbers_is_malformed() {
    for text in [
        "",
        " ",
        "1",
        "1.",
        ".1",
        "1.2.",
        "1.2.3.4",
        "0.1.0",
        "01.2.0",
        "1.02.0",
        "1.2.03",
        "+1.2",
        "-1.2",
        "1.2.3-rc.1",
        "1.2.3+b",
        "^1.2",
        "1.x",
        "v1.2.3",
        "1.2.3 ",
        "4294967296.0.0",
        "1.2\0",
        "١.٢",
    ] {
        assert!(Version::parse(text).is_err(), "{text:?} was accepted");
    }
    assert_eq!(Version::parse("1.2").unwrap(), Version::new(1, 2, 0));
    assert_eq!(Version::parse("4294967295.0.1").unwrap(), Version::new(u32::MAX, 0, 1));
}

#[test]
fn a_min_reader_that_contradicts_its_version_is_malformed() {
    for min_reader in ["2.0", "1.3", "1.2.x", ""] {
        assert!(Stamp::parse("1.2.0", Some(min_reader)).is_err(), "{min_reader:?}");
    }
    assert!(Stamp::parse("1.2.0", Some("1.2")).is_ok());
}

#[test]
fn a_version_reads_back_what_it_shows() {
    let version = Version::new(12, 0, 7);
    assert_eq!(Version::parse(&version.to_string()).unwrap(), version);
}
