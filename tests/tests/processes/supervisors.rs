//! Supervisors: what they say of the time for a drain, and what they are told.

use std::os::unix::net::UnixDatagram;

use super::*;

/// What a service manager hears, word by word.
struct Heard(UnixDatagram);

impl Heard {
    /// Waits for a message with a line, and answers all that came until then.
    async fn until(&self, wanted: &str) -> Vec<String> {
        let mut heard = Vec::new();
        until(&format!("systemd hears {wanted}"), Duration::from_secs(20), async || {
            let mut buffer = [0; 1_024];
            while let Ok(length) = self.0.recv(&mut buffer) {
                heard.extend(String::from_utf8_lossy(&buffer[..length]).lines().map(str::to_owned));
            }
            heard.iter().any(|line| line == wanted)
        })
        .await;
        heard
    }
}

#[tokio::test]
async fn a_service_manager_hears_of_a_workers_life_and_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("notify");
    let socket = UnixDatagram::bind(&address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let systemd = Heard(socket);
    let setup = Setup::over_sqlite(BINARY, folder.path())
        .with("NOTIFY_SOCKET", &address.display())
        .with("WATCHDOG_USEC", &400_000)
        .with("JOBS_GRACE_PERIOD", &"8s")
        .with("JOBS_PRE_STOP_DELAY", &"2");
    let jobs = setup.open().await;
    let worker = setup.start("worker");
    let heard = systemd.until("READY=1").await;
    assert!(heard.contains(&"STATUS=working".to_owned()), "{heard:?}");
    for _ in 0..3 {
        systemd.until("WATCHDOG=1").await;
    }
    let id = jobs.enqueue(Work { millis: 1_000 }).await.unwrap().id();
    until_state(&jobs, id, State::Running, Duration::from_secs(20)).await;
    worker.signal(Signal::TERM);
    let heard = systemd.until("STATUS=draining, done: 0 runs held").await;
    for line in ["STOPPING=1", "STATUS=draining, quiet: 1 runs held", "WATCHDOG=1"] {
        assert!(heard.contains(&line.to_owned()), "{line} is not in {heard:?}");
    }
    let log = worker.log();
    assert!(worker.wait().success());
    assert_eq!(jobs.job(id).await.unwrap().unwrap().state, State::Succeeded);
    // The split of what is left of the grace period, and the kind that it can't hold.
    let line = |words: &[&str]| log.lines().any(|line| words.iter().all(|it| line.contains(it)));
    let split = ["from=JOBS_GRACE_PERIOD", "finish_until=3.8s", "exit_at=5.5s"];
    assert!(line(&split), "{log}");
    assert!(line(&["kind=test.spin", "timeout=90s", "finish_until=3.8s", "needed=115s"]), "{log}");
}

#[tokio::test]
async fn a_grace_period_that_can_not_be_used_starts_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::over_sqlite(BINARY, folder.path()).with("JOBS_GRACE_PERIOD", &"soon");
    let worker = setup.start("worker");
    assert!(!worker.wait().success());
    let log = std::fs::read_to_string(folder.path().join("worker.log")).unwrap();
    assert!(log.contains("JOBS_GRACE_PERIOD is"), "{log}");
}
