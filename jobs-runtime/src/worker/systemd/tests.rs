use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn the_service_is_the_innermost_of_the_systemd_group() {
    let of = |text| unit(text).map(|unit| (unit.name, unit.is_of_user));
    let system = "0::/system.slice/shop.service\n";
    assert_eq!(of(system), Some(("shop.service", false)));
    let below = "0::/system.slice/shop.service/workers\n";
    assert_eq!(of(below), Some(("shop.service", false)));
    let user = "0::/user.slice/user-7.slice/user@7.service/app.slice/shop.service\n";
    assert_eq!(of(user), Some(("shop.service", true)));
    let old = "3:cpu:/docker/ab.service\n1:name=systemd:/system.slice/shop.service\n";
    assert_eq!(of(old), Some(("shop.service", false)));
    for none in ["", "0::/\n", "0::/docker/0123\n", "0::/user.slice/session-1.scope\n"] {
        assert_eq!(of(none), None, "{none:?}");
    }
}

#[test]
fn systemctl_is_asked_about_the_unit_and_its_failure_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let stub = folder.path().join("systemctl");
    let script = "#!/bin/sh\n[ \"$1\" = --user ] && exit 3\n\
        [ \"$*\" = 'show --value --property=TimeoutStopUSec -- shop.service' ] && echo '1min 30s'\n";
    std::fs::write(&stub, script).unwrap();
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let system = Unit { name: "shop.service", is_of_user: false };
    let answer = asked(&stub, system).unwrap();
    assert_eq!(span::of_systemd(&answer), Some(Duration::from_secs(90)));
    let error = asked(&stub, Unit { is_of_user: true, ..system }).unwrap_err();
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    assert!(asked(&folder.path().join("absent"), system).is_err());
}
