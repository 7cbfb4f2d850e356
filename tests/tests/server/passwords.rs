//! Passwords that a server really asks for, by every way that they may come.

use jobs_runtime::{ErrorKind, Jobs, State, StoreErrorKind, chain};
use rustix::process::Signal;
use tests::cluster::Cluster;
use tests::process::Setup;
use tests::{Work, until};

use crate::crew::{SOON, count};

const PASSWORDS: [&str; 6] =
    ["p@ss:w/o#r?d%^&", "with space", "100%41", "quote'\"\\", "größer€", "a=b&c=d@e"];

/// A server that takes the role `shop` by its password alone.
async fn guarded() -> Cluster {
    let mut cluster = Cluster::start(&[]).await;
    let made =
        cluster.psql(&["CREATE ROLE shop LOGIN", "GRANT CREATE ON DATABASE postgres TO shop"]);
    assert!(made.status.success(), "{made:?}");
    cluster.ask_for_passwords().await;
    cluster
}

fn set_password(cluster: &Cluster, password: &str) {
    let quoted = password.replace('\'', "''");
    let set = cluster.psql(&[&format!("ALTER ROLE shop PASSWORD '{quoted}'")]);
    assert!(set.status.success(), "{set:?}");
}

/// The address with a login, over the same socket.
fn with_login(cluster: &Cluster, login: &str) -> String {
    cluster.url().replace("jobs@", &format!("{login}@"))
}

fn encoded(password: &str) -> String {
    let digits = |byte: u8| format!("%{byte:02X}");
    password.bytes().map(digits).collect()
}

#[tokio::test]
async fn a_password_of_any_characters_opens_the_store_as_typed_and_as_encoded() {
    let cluster = guarded().await;
    for password in PASSWORDS {
        set_password(&cluster, password);
        // A percent sign with two digits behind it is an encoding: that one has to be encoded itself.
        let as_typed = password.replace("%41", "%2541");
        for written in [as_typed, encoded(password)] {
            let opened = Jobs::open(&with_login(&cluster, &format!("shop:{written}"))).await;
            opened.unwrap_or_else(|error| panic!("{password}: {}", chain(&error)));
        }
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_and_not_shown() {
    let cluster = guarded().await;
    set_password(&cluster, "right");
    for wrong in PASSWORDS {
        let error = Jobs::open(&with_login(&cluster, &format!("shop:{wrong}"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::Configuration));
        let told = format!("{} {error:?}", chain(&error));
        assert!(told.contains("password"), "{told}");
        assert!(!told.contains(wrong) && !told.contains(&encoded(wrong)), "{told}");
    }
    let error = Jobs::open(&with_login(&cluster, "shop")).await.unwrap_err();
    assert!(chain(&error).contains("password"), "{}", chain(&error));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_may_come_from_the_environment_or_a_file_and_reaches_no_log() {
    let cluster = guarded().await;
    let folder = tempfile::tempdir().unwrap();
    for (nth, password) in PASSWORDS.into_iter().enumerate() {
        set_password(&cluster, password);
        let jobs = Jobs::open(&with_login(&cluster, &format!("shop:{}", encoded(password)))).await;
        let jobs = jobs.unwrap();
        let setup = Setup {
            url: with_login(&cluster, "shop"),
            ..Setup::over_sqlite(env!("CARGO_BIN_EXE_worker-process"), folder.path())
        };
        let file = folder.path().join("passwords");
        let line = password.replace('\\', "\\\\").replace(':', "\\:");
        std::fs::write(&file, format!("*:*:*:shop:{line}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let by_environment = setup.clone().with("PGPASSWORD", &password);
        let by_file = setup.clone().with("PGPASSFILE", &file.display());
        for (how, setup) in [("environment", by_environment), ("file", by_file)] {
            let name = format!("{how}-{nth}");
            let process = setup.start(&name);
            let before = count(&jobs, State::Succeeded).await.unwrap_or(0);
            jobs.enqueue(Work { millis: 0 }).await.unwrap();
            until(&format!("{password} by {how}"), SOON, async || {
                count(&jobs, State::Succeeded).await > Some(before)
            })
            .await;
            process.signal(Signal::TERM);
            let log = process.log();
            assert!(process.wait().success(), "{log}");
            assert!(!log.contains(password), "{log}");
        }
    }
}
