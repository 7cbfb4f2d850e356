//! The derives in packages of every kind: see `tests/fixtures`.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Output},
};

#[test]
fn no_package_sees_a_warning_of_rustc_or_clippy() {
    let output = cargo(&["clippy", "--workspace", "--exclude", "lost"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_package_that_cannot_name_the_framework_is_told_how() {
    let output = cargo(&["check", "--package", "lost"]);
    assert!(!output.status.success());
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr));
}

/// Runs cargo over the fixtures, with the versions that the repository's own lock file names: those
/// have been downloaded when this test has been built.
fn cargo(arguments: &[&str]) -> Output {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    fs::create_dir_all(&target).unwrap();
    // Tests run beside each other, in processes of their own.
    let turn = File::create(target.join("turn")).unwrap();
    turn.lock().unwrap();
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    fs::copy(lock, fixtures.join("Cargo.lock")).unwrap();
    Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--quiet", "--color", "never"])
        .current_dir(fixtures)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap()
}
