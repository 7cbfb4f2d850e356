//! The drift check as a user meets it: a package whose job gets a field, built and tested by cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{
    fs::{self, File},
    str,
};

/// The tests of the fixture `locked` under some of its features, and a folder in place of its own.
struct Build {
    tests: PathBuf,
}

/// How the tests are run.
#[derive(Clone, Copy)]
enum Run {
    Check,
    Update,
    UpdateInCi,
}

impl Build {
    fn of(features: &str) -> Self {
        let fixtures = here().join("tests/fixtures");
        let (target, _turn) = target();
        fs::copy(here().join("../Cargo.lock"), fixtures.join("Cargo.lock")).unwrap();
        let output = Command::new(env!("CARGO"))
            .args(["test", "--no-run", "--offline", "--package", "locked"])
            .args(["--message-format=json", "--features", features])
            .current_dir(fixtures)
            .env("CARGO_TARGET_DIR", &target)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", str::from_utf8(&output.stderr).unwrap());
        let told = str::from_utf8(&output.stdout).unwrap();
        let mut messages =
            told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let built = messages.find_map(|message| message["executable"].as_str().map(PathBuf::from));
        // The next build takes its place.
        let tests = target.join(format!("locked-{}", features.replace(',', "-")));
        fs::copy(built.expect("cargo says what it built"), &tests).unwrap();
        Self { tests }
    }

    fn run(&self, package: &Path, run: Run) -> Output {
        let mut command = Command::new(&self.tests);
        command.env("CARGO_MANIFEST_DIR", package).env_remove("CI").env_remove("JOBS_LOCK");
        match run {
            Run::Check => {}
            Run::Update => _ = command.env("JOBS_LOCK", "update"),
            Run::UpdateInCi => _ = command.env("JOBS_LOCK", "update").env("CI", "true"),
        }
        command.output().unwrap()
    }

    fn passes(&self, package: &Path, run: Run) {
        let output = self.run(package, run);
        assert!(output.status.success(), "{}", text(&output));
    }

    fn fails(&self, package: &Path, run: Run) -> String {
        let output = self.run(package, run);
        assert!(!output.status.success(), "{}", text(&output));
        text(&output)
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that the packages of tests are built in, for one at a time.
fn target() -> (PathBuf, File) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    fs::create_dir_all(&target).unwrap();
    let turn = File::create(target.join("turn")).unwrap();
    turn.lock().unwrap();
    (target, turn)
}

/// Has cargo test a package; answers what its tests said.
fn cargo_test(package: &Path, target: &Path, lock: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--offline", "--lib"]).current_dir(package);
    command.env("CARGO_TARGET_DIR", target).env_remove("CI").env_remove("JOBS_LOCK");
    command.envs(lock.map(|mode| ("JOBS_LOCK", mode)));
    let output = command.output().unwrap();
    let said = str::from_utf8(&output.stderr).unwrap();
    assert!(output.status.success(), "{said}{}", text(&output));
    text(&output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_field_without_a_version_is_told_and_the_advice_leads_to_green() {
    let package = tempfile::tempdir().unwrap();
    let package = package.path();
    let lock = package.join("jobs.lock/billing.charge");

    let first = Build::of("");
    let said = first.fails(package, Run::UpdateInCi);
    assert!(said.contains("`billing.charge` 2.0 (locked::Charge):"), "{said}");
    assert!(said.contains("nothing is written where `CI` is set"), "{said}");
    assert!(!lock.exists());
    first.passes(package, Run::Update);
    first.passes(package, Run::Check);
    let mut files: Vec<_> =
        fs::read_dir(&lock).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["1.4.json", "2.0.json", "checkpoint-1.0.json"]);

    let said = Build::of("memo").fails(package, Run::Update);
    assert!(
        said.contains("`lines[].memo`: new field with a default, which needs a minor"),
        "{said}"
    );
    assert!(said.contains("write `version = \"2.1.0\"`"), "{said}");
    assert!(said.contains("run `JOBS_LOCK=update cargo test jobs_lock`"), "{said}");

    let minor = Build::of("memo,minor");
    minor.fails(package, Run::Check);
    minor.passes(package, Run::Update);
    minor.passes(package, Run::Check);
    // A reader of 2.0 ignores what it does not know, so the author may vouch for it.
    Build::of("memo,minor,readable").passes(package, Run::Check);
}

/// Cargo does not see a folder come.
#[test]
fn a_package_that_was_built_without_the_folder_finds_it_when_told_to_update() {
    let package = tempfile::tempdir().unwrap();
    let package = package.path();
    let core = here().join("../jobs-core").canonicalize().unwrap();
    let manifest = format!(
        "[workspace]\n\
         [package]\nname = \"late\"\nedition = \"2024\"\n\
         [dependencies]\nserde = {{ version = \"1.0\", features = [\"derive\"] }}\n\
         schemars = \"1.2\"\njobs-core = {{ path = {core:?}, features = [\"schema\"] }}\n"
    );
    let source = "\
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, jobs_core::Job)]\n\
        #[job(kind = \"net.ping\", version = \"1.0.0\")]\n\
        pub struct Ping { pub host: String }\n";
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::copy(here().join("../Cargo.lock"), package.join("Cargo.lock")).unwrap();
    fs::create_dir(package.join("src")).unwrap();
    fs::write(package.join("src/lib.rs"), source).unwrap();

    let (target, _turn) = target();
    let said = cargo_test(package, &target, None);
    assert!(said.contains("running 0 tests"), "{said}");
    fs::create_dir(package.join("jobs.lock")).unwrap();
    let said = cargo_test(package, &target, Some("update"));
    assert!(said.contains("test jobs_lock_ping ... ok"), "{said}");
    assert!(package.join("jobs.lock/net.ping/1.0.json").exists());
    let said = cargo_test(package, &target, None);
    assert!(said.contains("test jobs_lock_ping ... ok"), "{said}");
}
