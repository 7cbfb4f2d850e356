//! Sessions: commands and their answers as one text, over each store.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use jobs_runtime::{JobId, Jobs, JobsBuilder};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};

use crate::postgres_support::{block_on, connect, quoted, server, server_url, with_schema};

/// The database that a session is about.
pub(crate) struct Session {
    pub(crate) url: String,
    pub(crate) schema: String,
    text: String,
}

impl Session {
    /// The client of a program beside the command line.
    pub(crate) fn builder(&self) -> JobsBuilder {
        let schema = self.schema.clone();
        Jobs::builder().postgres(move |options| options.schema(schema.clone()))
    }

    pub(crate) async fn client(&self) -> Jobs {
        self.builder().build_label("shop 1.0").open(&self.url).await.expect("the store opens")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = jobs();
        command.args(arguments).env("JOBS_URL", &self.url).env("JOBS_SCHEMA", &self.schema);
        command
    }

    /// Runs a command and adds it and its answer to the session's text.
    pub(crate) fn run(&mut self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    /// Makes runs that have ended each of this length.
    pub(crate) async fn stretch_runs(&self, jobs: &[JobId], length: Duration) {
        let micros = length.as_micros();
        let ids: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        let stretch = |table: &str| {
            format!(
                "UPDATE {table} SET finished_at_us = claimed_at_us + {micros} WHERE id IN ({})",
                ids.join(", ")
            )
        };
        self.sql("job", stretch).await;
    }

    /// Writes what a worker does about successes that it could not store at once.
    pub(crate) async fn note_late(&self, jobs: &[JobId]) {
        let note = |job| format!("({job}, 1, 1, 0, 1, 'settled_late', 'settled_late', '')");
        let notes: Vec<String> = jobs.iter().map(note).collect();
        let note = |table: &str| {
            format!(
                "INSERT INTO {table} (job_id, slot, number, at_us, claim_number, kind, class, text) \
                 VALUES {}",
                notes.join(", ")
            )
        };
        self.sql("event", note).await;
    }

    async fn sql(&self, table: &str, statement: impl FnOnce(&str) -> String) {
        if self.url.starts_with("sqlite:") {
            let mut file = SqliteConnection::connect(&self.url).await.unwrap();
            let statement = statement(&format!("jobs_{table}"));
            file.execute(AssertSqlSafe(statement)).await.unwrap();
        } else {
            let statement = statement(&format!("{}.{table}", quoted(&self.schema)));
            connect().await.execute(AssertSqlSafe(statement)).await.unwrap();
        }
    }

    /// Holds up every redrive until what this answers is dropped.
    pub(crate) async fn hold(&self) -> Box<dyn std::any::Any> {
        if self.url.starts_with("sqlite:") {
            let mut file = SqliteConnection::connect(&self.url).await.unwrap();
            file.execute("BEGIN IMMEDIATE").await.unwrap();
            return Box::new(file);
        }
        let mut server = connect().await;
        let rows = format!("SELECT FROM {}.job FOR UPDATE", quoted(&self.schema));
        server.execute("BEGIN").await.unwrap();
        server.execute(AssertSqlSafe(rows)).await.unwrap();
        Box::new(server)
    }

    /// What a JSON command answers.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = fed(self.command(arguments), "");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", told(&output)))
    }

    /// As [`run`](Self::run), with something on standard input.
    pub(crate) fn run_with(&mut self, arguments: &[&str], input: &str) -> Output {
        let output = fed(self.command(arguments), input);
        let _ = writeln!(self.text, "$ jobs {}", typed(arguments));
        self.text.push_str(&told(&output));
        self.text.push('\n');
        output
    }
}

/// The binary, in a known environment.
pub(crate) fn jobs() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobs"));
    for name in ["JOBS_URL", "JOBS_SCHEMA", "NO_COLOR", "PGPASSWORD"] {
        command.env_remove(name);
    }
    command.env("USER", "ann");
    command
}

pub(crate) fn fed(mut command: Command, input: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    // A command that reads no input may be gone already.
    drop(child.stdin.take().expect("a pipe").write_all(input.as_bytes()));
    child.wait_with_output().expect("the binary ends")
}

fn typed(arguments: &[&str]) -> String {
    let quoted = |argument: &&str| {
        let is_plain = argument.chars().all(|c| c.is_alphanumeric() || "-_.,=:@/".contains(c));
        if is_plain { (*argument).to_owned() } else { format!("'{argument}'") }
    };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Standard output, standard error, and the exit status where it is not 0.
pub(crate) fn told(output: &Output) -> String {
    let mut text = String::from_utf8(output.stdout.clone()).expect("answers are text");
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let _ = writeln!(text, "! {line}");
    }
    match output.status.code() {
        Some(0) => {}
        Some(status) => {
            let _ = writeln!(text, "exit status {status}");
        }
        None => text.push_str("ended by a signal\n"),
    }
    text
}

/// Runs one session over SQLite and over PostgreSQL and answers its text, which must be the same.
pub(crate) fn over_both(session: &impl AsyncFn(&mut Session)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = text_of(session, sqlite_url(folder.path()), "jobs");
    let mut postgres = String::new();
    with_schema(async |schema| {
        let mut on_postgres = Session { url: server_url(), schema, text: String::new() };
        session(&mut on_postgres).await;
        let server = server();
        let database = server.get_database().expect("the server's address names a database");
        let (host, port) = (server.get_host(), server.get_port());
        let place = format!("{host}:{port}/{database} (schema {})", on_postgres.schema);
        postgres = on_postgres.text.replace(&place, "<database>");
    });
    let place = folder.path().join("jobs.db").display().to_string();
    let sqlite = settled(&sqlite.replace(&place, "<database>"));
    let postgres = settled(&postgres);
    assert_eq!(sqlite, postgres, "the stores answer differently");
    sqlite
}

fn text_of(session: &impl AsyncFn(&mut Session), url: String, schema: &str) -> String {
    let mut on_sqlite = Session { url, schema: schema.to_owned(), text: String::new() };
    block_on(session(&mut on_sqlite));
    on_sqlite.text
}

pub(crate) fn sqlite_url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("jobs.db").display())
}

/// The text with what is different at every run made alike: instants, and spans that were measured.
pub(crate) fn settled(text: &str) -> String {
    const INSTANT: &str = "0000-00-00T00:00:00Z";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || "-:.TZ".contains(c)));
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        // The colon of a sentence.
        let (word, behind) = match word.strip_suffix(':') {
            Some(instant) => (instant, &rest[instant.len()..]),
            None => (word, behind),
        };
        let is_wait = behind.starts_with("s  ") && word.bytes().all(|c| c.is_ascii_digit());
        let is_instant = word.len() >= 20 && word.ends_with('Z') && word.contains('T');
        let is_measured = behind.starts_with("ms\n") || out.ends_with("_ms\":");
        let is_span =
            out.ends_with('(') || out.ends_with("(in ") || out.trim_end().ends_with(" took");
        if is_instant {
            out.push_str(INSTANT);
            rest = behind;
        } else if is_span {
            let unit = behind.find([')', '\n']).unwrap_or(behind.len());
            out.push_str("some time");
            rest = &behind[unit..];
        } else if is_wait || is_measured {
            out.push('0');
            rest = behind;
        } else {
            out.push_str(word);
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}
