//! Worker processes that tests start, stop and kill.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jobs_runtime::Jobs;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::schema::{Schema, server_url};
use crate::until;

/// What a worker process is to do.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The binary; in a test `env!("CARGO_BIN_EXE_worker-process")`.
    pub binary: PathBuf,
    /// The address of the store.
    pub url: String,
    /// The schema on a server; `None` over a file.
    pub schema: Option<Arc<Schema>>,
    /// The ledger that its handlers write.
    pub ledger: PathBuf,
    /// More settings, as `NAME=VALUE` of the binary's environment.
    pub settings: Vec<(&'static str, String)>,
}

/// A worker process; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Setup {
    /// A setup with the default settings over a folder: a SQLite file and a ledger in it.
    pub fn over_sqlite(binary: &str, folder: &Path) -> Self {
        Self {
            binary: binary.into(),
            url: format!("sqlite://{}", folder.join("jobs.db").display()),
            schema: None,
            ledger: folder.join("ledger"),
            settings: Vec::new(),
        }
    }

    /// A setup with the default settings over a schema of its own on the shared server, and a ledger
    /// in a folder.
    ///
    /// # Panics
    /// When no server is given.
    pub fn over_postgres(binary: &str, folder: &Path) -> Self {
        let schema = Some(Arc::new(Schema::fresh()));
        Self { url: server_url(), schema, ..Self::over_sqlite(binary, folder) }
    }

    /// A client of the same store.
    ///
    /// # Panics
    /// When the store can't be opened.
    pub async fn open(&self) -> Jobs {
        let mut builder = Jobs::builder();
        if let Some(schema) = &self.schema {
            let name = schema.name().to_owned();
            builder = builder.postgres(move |options| options.schema(name.clone()));
        }
        builder.open(&self.url).await.expect("the store opens")
    }

    /// This setup with one more setting.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &dyn ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// Starts a process. What it logs goes to a file beside the ledger.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start(&self, name: &str) -> Process {
        let log = self.ledger.with_file_name(format!("{name}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log);
        let child = Command::new(&self.binary)
            .env("URL", &self.url)
            .env("LEDGER", &self.ledger)
            .env("NAME", name)
            .envs(self.schema.iter().map(|schema| ("SCHEMA", schema.name())))
            .envs(self.settings.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file.expect("the log can be opened"))
            .spawn()
            .expect("the worker process starts");
        Process { child, log }
    }
}

impl Setup {
    /// A connection to the file such as a person with a shell has, that waits so long for others.
    ///
    /// # Panics
    /// When the store is no file, or it can't be opened.
    pub async fn shell(&self, patience: Duration) -> SqliteConnection {
        let path = self.url.strip_prefix("sqlite://").expect("a SQLite file");
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(patience);
        let opened = SqliteConnection::connect_with(&options.disable_statement_logging()).await;
        opened.expect("the file opens")
    }

    /// Waits until every transaction has ended that is under way in the store now.
    ///
    /// # Panics
    /// When one does not within half a minute.
    pub async fn until_written(&self) {
        let Some(schema) = &self.schema else {
            // One writes at a time: who has the lock has waited for the others.
            let mut shell = self.shell(Duration::from_secs(30)).await;
            let write = sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut shell).await;
            write.expect("the lock comes to be free");
            return;
        };
        let mut shell = PgConnection::connect(&server_url()).await.expect("a server");
        let begun_by = "SELECT count(*) FROM pg_stat_activity
             WHERE query LIKE '%' || $1 || '.%' AND pid <> pg_backend_pid()
                AND xact_start <= $2::timestamptz";
        let now: String = sqlx::query_scalar("SELECT now()::text")
            .fetch_one(&mut shell)
            .await
            .expect("an answer");
        let shell = tokio::sync::Mutex::new(shell);
        until("what has begun has ended", Duration::from_secs(30), async || {
            let begun = sqlx::query_scalar(begun_by).bind(schema.name()).bind(&now);
            let begun: i64 = begun.fetch_one(&mut *shell.lock().await).await.expect("an answer");
            begun == 0
        })
        .await;
    }

    /// Whether somebody is in the middle of a write, and holds what others need until he ends it.
    async fn is_being_written(&self) -> bool {
        let Some(schema) = &self.schema else {
            let mut shell = self.shell(Duration::ZERO).await;
            return sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut shell).await.is_err();
        };
        let mut shell = PgConnection::connect(&server_url()).await.expect("a server");
        let sessions = "SELECT count(*) FROM pg_stat_activity
             WHERE state <> 'idle' AND query LIKE '%' || $1 || '.%' AND pid <> pg_backend_pid()";
        let busy: i64 = sqlx::query_scalar(sessions)
            .bind(schema.name())
            .fetch_one(&mut shell)
            .await
            .expect("an answer");
        busy > 0
    }
}

impl Process {
    fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.expect("a process id")
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone already.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process is there");
    }

    /// Stops it as SIGSTOP does, and where it is in the middle of a write lets it end that first: else
    /// it would keep the others from the store for as long as it stands still.
    ///
    /// # Panics
    /// When it never comes to an end of its writes.
    pub async fn stand_still(&self, setup: &Setup) {
        for _ in 0..200 {
            self.signal(Signal::STOP);
            let stopped = waitpid(Some(self.pid()), WaitOptions::UNTRACED);
            let (_, status) = stopped.expect("it can be waited for").expect("it has stopped");
            assert!(status.stopped(), "it has ended: {}", self.log());
            if !setup.is_being_written().await {
                return;
            }
            self.signal(Signal::CONT);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never stops writing: {}", self.log());
    }

    /// Kills it at once, as SIGKILL does, and reaps it.
    ///
    /// # Panics
    /// When it can't be killed.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be reaped");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it can't be waited for.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it can be reaped")
    }

    /// Whether it still runs.
    ///
    /// # Panics
    /// When it can't be asked.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_none()
    }

    /// How many bytes it has read so far, from wherever.
    ///
    /// # Panics
    /// When it is gone.
    pub fn bytes_read(&self) -> u64 {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.child.id()));
        let io = io.expect("the process is there");
        let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        read.expect("it is told").parse().expect("a number")
    }

    /// Where it logs.
    pub fn log_file(&self) -> PathBuf {
        self.log.clone()
    }

    /// What it logged so far.
    ///
    /// # Panics
    /// When the log can't be read.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log can be read")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A test that fails leaves no process behind; one that is gone already needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
