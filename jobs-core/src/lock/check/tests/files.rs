//! What is written, and when nothing is.

use std::fs;

use super::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Plain {
    a: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Changed {
    a: u8,
    b: Option<u8>,
}

fn file(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join("jobs.lock/test.drift").join(name)
}

#[test]
fn a_version_without_a_lock_fails_and_tells_the_command() {
    let folder = TempDir::new().unwrap();
    let error = subject::<Plain>((1, 0)).check(folder.path(), Mode::Check).unwrap_err();
    assert!(error.contains("`test.drift` 1.0 (Drift):"), "{error}");
    assert!(error.contains("run `JOBS_LOCK=update cargo test jobs_lock`"), "{error}");
    assert!(!folder.path().join("jobs.lock").exists());
}

#[test]
fn nothing_is_written_where_ci_is_set() {
    let folder = TempDir::new().unwrap();
    let error = subject::<Plain>((1, 0)).check(folder.path(), Mode::Ci).unwrap_err();
    assert!(error.contains("nothing is written where `CI` is set"), "{error}");
    assert!(!folder.path().join("jobs.lock").exists());
}

#[test]
fn an_update_never_touches_what_is_locked() {
    let folder = TempDir::new().unwrap();
    lock::<Plain>(folder.path(), (1, 0));
    let before = fs::read(file(folder.path(), "1.0.json")).unwrap();
    let error = subject::<Changed>((1, 0)).check(folder.path(), Mode::Update).unwrap_err();
    assert!(error.contains("`b`: new field with a default, which needs a minor"), "{error}");
    assert!(error.contains("write `version = \"1.1.0\"`"), "{error}");
    assert!(error.contains("If 1.0 was never deployed, delete "), "{error}");
    subject::<Changed>((1, 1)).check(folder.path(), Mode::Update).unwrap();
    subject::<Changed>((1, 1)).check(folder.path(), Mode::Ci).unwrap();
    assert_eq!(fs::read(file(folder.path(), "1.0.json")).unwrap(), before);
}

#[test]
fn a_lock_reads_back_as_the_shape_that_it_was_made_from() {
    let folder = TempDir::new().unwrap();
    lock::<Nested<Changed>>(folder.path(), (1, 0));
    for mode in [Mode::Check, Mode::Update, Mode::Ci] {
        subject::<Nested<Changed>>((1, 0)).check(folder.path(), mode).unwrap();
    }
}

#[test]
fn a_checkpoint_stands_beside_its_job() {
    let folder = TempDir::new().unwrap();
    lock::<Plain>(folder.path(), (1, 0));
    let saved = Subject { part: Part::Checkpoint, ..subject::<Changed>((1, 0)) };
    saved.check(folder.path(), Mode::Update).unwrap();
    assert!(file(folder.path(), "1.0.json").exists());
    assert!(file(folder.path(), "checkpoint-1.0.json").exists());
    let error = Subject { part: Part::Checkpoint, ..subject::<Plain>((1, 0)) }
        .check(folder.path(), Mode::Check)
        .unwrap_err();
    assert!(error.starts_with("the checkpoint of `test.drift` 1.0"), "{error}");
}

#[test]
fn a_job_without_a_schema_fails_once_its_package_takes_part() {
    let folder = TempDir::new().unwrap();
    let blind = || Subject { schemas: None, ..subject::<Plain>((1, 0)) };
    blind().check(folder.path(), Mode::Check).unwrap();
    lock::<Plain>(folder.path(), (1, 1));
    let error = blind().check(folder.path(), Mode::Check).unwrap_err();
    assert!(error.contains("derive(schemars::JsonSchema)"), "{error}");
}

#[test]
fn a_lock_that_can_not_be_read_is_no_lock_that_passes() {
    let folder = TempDir::new().unwrap();
    lock::<Plain>(folder.path(), (1, 0));
    fs::write(file(folder.path(), "1.0.json"), "<<<<<<< ours").unwrap();
    let error = subject::<Plain>((1, 0)).check(folder.path(), Mode::Check).unwrap_err();
    assert!(error.contains("can't read"), "{error}");
}

#[test]
fn an_alias_whose_locks_can_not_be_read_does_not_pass() {
    let folder = TempDir::new().unwrap();
    lock::<Plain>(folder.path(), (1, 0));
    let renamed = || Subject { kinds: vec!["test.drift", "test.old"], ..subject::<Plain>((1, 0)) };
    renamed().check(folder.path(), Mode::Check).unwrap();
    fs::write(folder.path().join("jobs.lock/test.old"), "no folder").unwrap();
    let error = renamed().check(folder.path(), Mode::Check).unwrap_err();
    assert!(error.contains("can't read the locks of `test.old`"), "{error}");
}

#[test]
fn a_lock_that_appears_meanwhile_stays() {
    use crate::lock::file::Folder;
    let package = TempDir::new().unwrap();
    lock::<Plain>(package.path(), (1, 0));
    let before = fs::read(file(package.path(), "1.0.json")).unwrap();
    let folder = Folder::of(package.path(), "test.drift", Part::Payload);
    let mut other = folder.read((1, 0)).unwrap();
    other.samples.clear();
    folder.write((1, 0), &other).unwrap_err();
    assert_eq!(fs::read(file(package.path(), "1.0.json")).unwrap(), before);
    let names = fs::read_dir(package.path().join("jobs.lock/test.drift")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["1.0.json"], "nothing partial is left");
}
