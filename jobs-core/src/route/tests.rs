use super::*;
use crate::version::{Line, Stamp, Verdict, judge};

const LINES: &[Line] = &[Line { major: 1, minor: 4 }, Line { major: 3, minor: 2 }];

#[test]
fn a_route_is_derived_from_the_oldest_reader() {
    let route = |version, reader| Route::derive("mail.send", version, reader).to_string();
    assert_eq!(route("2.3.1", None), "mail.send@2.3");
    assert_eq!(route("2.3.1", Some("2.0")), "mail.send@2.0");
    assert_eq!(route("2.3", None), "mail.send@2.3");
    assert_eq!(route("banana", None), "mail.send@banana");
    assert_eq!(route("", None), "mail.send@");
}

#[test]
fn a_suspect_has_a_route_of_its_own_that_is_judged_alike() {
    let route = Route::derive("a.b", "3.2.0", None);
    for crashes in 0..SUSPECT_CRASHES {
        assert_eq!(route.clone().after_crashes(crashes), route);
    }
    let suspect = route.clone().after_crashes(SUSPECT_CRASHES);
    assert!(suspect.is_suspect() && !route.is_suspect());
    assert_eq!(suspect.parts(), route.parts());
    assert_eq!(suspect.judge(|_| Reader::Reads(LINES)), RouteVerdict::Reads);
    for text in ["..suspect", "1..suspect", "1.0..suspect", "@..suspect", "1@..suspect"] {
        for kind in ["", "a", "a@1.0"] {
            assert!(!Route::derive(kind, text, None).is_suspect(), "{kind:?} {text:?}");
        }
    }
}

#[test]
fn a_malformed_route_is_taken_by_anyone() {
    for text in ["", "a", "a@", "a@1", "a@x.y", "a@0.1", "a@01.2"] {
        let verdict = Route::from_store(text).judge(|_| Reader::Unknown);
        assert_eq!(verdict, RouteVerdict::Malformed, "{text:?}");
    }
}

#[test]
fn a_route_is_foreign_only_when_every_job_of_it_would_be_refused() {
    let versions = [(1, 0), (1, 4), (1, 5), (2, 0), (3, 0), (3, 2), (3, 3), (4, 0)]
        .map(|(major, minor)| crate::Version { major, minor, patch: 0 });
    for reader in [Reader::Unknown, Reader::Retired, Reader::Reads(LINES)] {
        for version in versions {
            for oldest in 0..=version.minor {
                let min_reader = MinReader { major: version.major, minor: oldest };
                let stamp = Stamp::new(version, min_reader).unwrap();
                let route = Route::new("a.b", min_reader).judge(|_| reader);
                let verdict = judge(stamp, reader);
                if let RouteVerdict::Foreign(refusal) = route {
                    assert_eq!(verdict, Verdict::Refuse(refusal), "{version} from {min_reader}");
                }
                if verdict == Verdict::Refuse(Refusal::Newer) && oldest == version.minor {
                    assert_eq!(route, RouteVerdict::Foreign(Refusal::Newer), "{version}");
                }
            }
        }
    }
}
