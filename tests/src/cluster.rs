//! PostgreSQL servers of a test's own, which it may stop, fill and promote.
//!
//! They listen on a socket in a temporary folder and nowhere else, and end when dropped. Their
//! `fsync` is off: tests end processes, never the power, and what was written outlives a process.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::until;

/// How long a server may take to start.
const START: Duration = Duration::from_mins(1);

/// A server, running or not.
#[derive(Debug)]
pub struct Cluster {
    binaries: PathBuf,
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl Cluster {
    /// A fresh server that runs, with these lines in its configuration.
    ///
    /// # Panics
    /// When `JOBS_TEST_POSTGRES_BIN` is unset, or the server can't be made or started.
    pub async fn start(settings: &[&str]) -> Self {
        let mut cluster = Self::in_fresh_folder();
        let mut initdb = cluster.command("initdb");
        initdb.arg("--pgdata").arg(cluster.data()).args([
            "--username=jobs",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        ]);
        run(initdb);
        cluster.configure(settings);
        cluster.start_again().await;
        cluster
    }

    /// A standby of this server, which streams from it.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub async fn standby(&self) -> Self {
        let mut standby = Self::in_fresh_folder();
        let mut copy = standby.command("pg_basebackup");
        copy.arg("--host").arg(self.folder.path()).arg("--pgdata").arg(standby.data());
        copy.args(["--username=jobs", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"]);
        run(copy);
        standby.configure(&[]);
        standby.start_again().await;
        standby
    }

    /// The address of its database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The address of one of its databases.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://jobs@localhost/{database}?host={}", self.folder.path().display())
    }

    /// Makes a database whose tables are kept in a folder, which is made too.
    ///
    /// # Panics
    /// When either can't be made.
    pub fn database_in(&self, database: &str, folder: &Path) {
        std::fs::create_dir(folder).expect("a new folder");
        if let Some((owner, group)) = owner() {
            std::os::unix::fs::chown(folder, Some(owner), Some(group)).expect("root gives it away");
        }
        let made = self.psql(&[
            &format!("CREATE TABLESPACE {database} LOCATION '{}'", folder.display()),
            &format!("CREATE DATABASE {database} TABLESPACE {database}"),
        ]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// The socket that it listens on.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Ends every session and process at once, as a crash does.
    ///
    /// # Panics
    /// When it does not run.
    pub fn stop_at_once(&mut self) {
        let mut server = self.server.take().expect("the server runs");
        let pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), Signal::QUIT).expect("the server is there");
        server.wait().expect("it can be reaped");
    }

    /// Starts a server that was stopped, and waits until it takes connections.
    ///
    /// # Panics
    /// When it does not within a minute.
    pub async fn start_again(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.log());
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data()).stdout(Stdio::null());
        postgres.stderr(log.expect("the log can be opened"));
        self.server = Some(postgres.spawn().expect("the server starts"));
        until("the server takes connections", START, async || {
            let mut ready = self.command("pg_isready");
            ready.args(["--quiet", "--username=jobs", "--dbname=postgres", "--host"]);
            let is_ready = ready.arg(self.folder.path()).status().expect("pg_isready runs");
            let server = self.server.as_mut().expect("it was started above");
            let ended = server.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "the server ended: {}", self.read_log());
            is_ready.success()
        })
        .await;
    }

    /// Makes a standby a server of its own.
    ///
    /// # Panics
    /// When it is none.
    pub fn promote(&self) {
        let mut promote = self.command("pg_ctl");
        promote.arg("promote").arg("--pgdata").arg(self.data());
        run(promote);
    }

    /// Runs statements by `psql`, up to the first that fails.
    ///
    /// # Panics
    /// When it can't be run.
    pub fn psql(&self, statements: &[&str]) -> Output {
        let mut psql = self.command("psql");
        psql.arg("--host").arg(self.folder.path());
        psql.args(["--username=jobs", "--dbname=postgres", "--no-psqlrc", "--set=ON_ERROR_STOP=1"]);
        psql.args(statements.iter().flat_map(|sql| ["--command", sql]));
        psql.output().expect("psql can be run")
    }

    /// Has every role but the one that made the server prove itself by a password from now on.
    ///
    /// # Panics
    /// When it can't be started again.
    pub async fn ask_for_passwords(&mut self) {
        let rules = "local all jobs trust\nlocal all all scram-sha-256\n";
        std::fs::write(self.data().join("pg_hba.conf"), rules).expect("the file can be written");
        self.stop_at_once();
        self.start_again().await;
    }

    /// Writes a file that the server alone may read, and answers where it is.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn give(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
        file.expect("a new file").write_all(text.as_bytes()).expect("it can be written");
        if let Some((owner, group)) = owner() {
            std::os::unix::fs::chown(&path, Some(owner), Some(group)).expect("root gives it away");
        }
        path
    }

    /// What the server logged so far.
    ///
    /// # Panics
    /// When the log can't be read.
    pub fn read_log(&self) -> String {
        std::fs::read_to_string(self.log()).expect("the log can be read")
    }

    fn in_fresh_folder() -> Self {
        let binaries = std::env::var("JOBS_TEST_POSTGRES_BIN").unwrap_or_else(|_| {
            panic!(
                "these tests start PostgreSQL servers: run them with `scripts/test`, or set \
                 JOBS_TEST_POSTGRES_BIN to the folder that has initdb"
            )
        });
        // A socket's path holds about 100 bytes.
        let folder = tempfile::Builder::new().prefix("jobs-pg.").tempdir_in("/tmp");
        let folder = folder.expect("a folder");
        if let Some((owner, group)) = owner() {
            std::os::unix::fs::chown(folder.path(), Some(owner), Some(group))
                .expect("root gives folders away");
        }
        Self { binaries: binaries.into(), folder, server: None }
    }

    fn configure(&self, settings: &[&str]) {
        let file = OpenOptions::new().append(true).open(self.data().join("postgresql.conf"));
        let socket = format!("unix_socket_directories = '{}'", self.folder.path().display());
        let ours = ["listen_addresses = ''", &socket, "fsync = off", "shared_buffers = 32MB"];
        let lines: Vec<&str> = ours.iter().chain(settings).copied().collect();
        let mut file = file.expect("the configuration can be opened");
        file.write_all(format!("\n{}\n", lines.join("\n")).as_bytes()).expect("and written");
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A program of the server's. It refuses to run as root, and ends with the test.
    fn command(&self, program: &str) -> Command {
        let path = self.binaries.join(program);
        let mut command = match owner() {
            Some((owner, group)) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={owner}")).arg(format!("--regid={group}"));
                command.args(["--clear-groups", "--pdeathsig=QUIT", "--"]).arg(path);
                command
            }
            None => Command::new(path),
        };
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.stop_at_once();
        }
    }
}

fn run(mut command: Command) {
    let output = command.output().expect("the server's programs can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// Who servers run as where this process is root: `postgres`, or `nobody`.
fn owner() -> Option<(u32, u32)> {
    if !geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string(Path::new("/etc/passwd")).expect("users can be read");
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user other than root"))
}
