//! Wake-ups: `NOTIFY` with an empty payload on one channel a schema, and a connection that listens.
//!
//! 1. A wake-up is a hint: what misses it waits for a poll.
//! 2. Not more than one notification goes out in [`WINDOW`]; a change within it is told at its end.
//! 3. None is sent while the server's queue of notifications is half full or more: when it is full,
//!    every commit that notifies fails.
//! 4. The listener is never inside a transaction, and listens again before it reports a change, so
//!    that nothing falls between its death and the catch-up.
//!
//! The channel's name is a hash of the schema's: a channel holds 63 bytes, and what collapses to
//! the same name costs a wake-up for nothing.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::Clock;
use jobs_core::store::Wake;
use sqlx::Executor;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::lane::Lanes;
use super::sql::Statements;
use crate::clock::SystemClock;
use crate::log::rounded;
use crate::outage::{CALM, News, Outage};

/// The shortest time between two notifications of this process.
const WINDOW: Duration = Duration::from_millis(5);
/// A listener that has heard nothing for so long asks whether its connection lives.
const SILENCE: Duration = Duration::from_secs(30);
/// How long that, and connecting, may take.
const ANSWER: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// No notification went out lately.
const QUIET: u8 = 0;
/// One went out, and its window runs.
const TOLD: u8 = 1;
/// As before, and something changed since.
const CHANGED: u8 = 2;

/// Tells the listeners that something changed.
pub(super) struct Bell {
    channel: String,
    state: Arc<AtomicU8>,
    lanes: Arc<Lanes>,
    statements: Arc<Statements>,
    windows: Mutex<JoinSet<()>>,
}

impl Bell {
    pub(super) fn new(schema: &str, lanes: Arc<Lanes>, statements: Arc<Statements>) -> Self {
        let channel = channel(schema);
        Self { channel, state: Arc::default(), lanes, statements, windows: Mutex::default() }
    }

    /// The channel that listeners listen on.
    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// The channel that a statement is to notify itself, or nothing while a window runs: then the
    /// caller rings once the change is committed, for the window may end before that.
    pub(super) fn carried(&self) -> Option<&str> {
        let begun = self.state.compare_exchange(QUIET, TOLD, Ordering::SeqCst, Ordering::SeqCst);
        begun.is_ok().then(|| {
            self.run(self.window(Told::ByStatement));
            self.channel.as_str()
        })
    }

    /// Tells of a change that was committed.
    pub(super) fn ring(&self) {
        if self.begin_window() {
            self.run(self.window(Told::NotYet));
        }
    }

    fn begin_window(&self) -> bool {
        let begun = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            Some(if state == QUIET { TOLD } else { CHANGED })
        });
        begun == Ok(QUIET)
    }

    fn window(&self, told: Told) -> Window {
        Window {
            told,
            channel: self.channel.clone(),
            open: Open { state: Arc::clone(&self.state), is_over: false },
            lanes: Arc::clone(&self.lanes),
            statements: Arc::clone(&self.statements),
        }
    }

    fn run(&self, window: Window) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        while windows.try_join_next().is_some() {}
        windows.spawn(window.run());
    }
}

/// Who sent the notification that begins a window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    ByStatement,
    NotYet,
}

struct Window {
    told: Told,
    channel: String,
    open: Open,
    lanes: Arc<Lanes>,
    statements: Arc<Statements>,
}

/// The state of a window. Dropped before the window is over, as when its runtime ends, it lets the
/// next change begin another one; else the bell would be mute from then on.
struct Open {
    state: Arc<AtomicU8>,
    is_over: bool,
}

impl Open {
    /// Ends the window where nothing changed within it; else a new one begins.
    fn end(&mut self) -> bool {
        let ended = self.state.compare_exchange(TOLD, QUIET, Ordering::SeqCst, Ordering::SeqCst);
        self.is_over = ended.is_ok();
        if !self.is_over {
            self.state.store(TOLD, Ordering::SeqCst);
        }
        self.is_over
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_over {
            self.state.store(QUIET, Ordering::SeqCst);
        }
    }
}

impl Window {
    async fn run(mut self) {
        if self.told == Told::NotYet {
            self.tell().await;
        }
        loop {
            tokio::time::sleep(WINDOW).await;
            if self.open.end() {
                return;
            }
            self.tell().await;
        }
    }

    async fn tell(&self) {
        let statement = self.statements.notify().bind(self.channel.clone());
        if let Err(trouble) = self.lanes.one(statement).await {
            let error = trouble.during("notify the listeners");
            tracing::debug!(%error, "workers hear of new jobs by their next poll");
        }
    }
}

/// Hears of changes: all ears of a store share one connection.
pub(super) struct Ear {
    line: Arc<Line>,
    changes: watch::Receiver<()>,
}

/// The connection that listens, for all ears of a store. Who waits first hears for the others too,
/// so nothing runs by itself, and with the last ear the connection goes.
pub(super) struct Line {
    source: Option<PgConnectOptions>,
    channel: String,
    changes: watch::Sender<()>,
    hearing: tokio::sync::Mutex<Hearing>,
}

#[derive(Default)]
struct Hearing {
    listener: Option<PgListener>,
    /// Kept from call to call, so that dropped calls get on too.
    connecting: Option<Connecting>,
    pause: Duration,
    /// When it began to listen, on the clock since boot.
    listening_at: Duration,
    /// When it last heard something, on the same clock.
    heard_at: Duration,
    outage: Outage,
}

type Connecting = Pin<Box<dyn Future<Output = Result<PgListener, sqlx::Error>> + Send>>;

impl Line {
    /// Listens through a connection of its own; without an address it hears nothing.
    pub(super) fn new(source: Option<PgConnectOptions>, channel: &str) -> Self {
        let (channel, changes) = (channel.to_owned(), watch::Sender::new(()));
        Self { source, channel, changes, hearing: tokio::sync::Mutex::default() }
    }

    /// Hears for all ears, until it is dropped.
    async fn hear_on(&self) -> Infallible {
        let Some(source) = &self.source else {
            return std::future::pending().await;
        };
        let mut hearing = self.hearing.lock().await;
        loop {
            hearing.change(source, &self.channel).await;
            self.changes.send_replace(());
        }
    }
}

impl Ear {
    pub(super) fn new(line: Arc<Line>) -> Self {
        let changes = line.changes.subscribe();
        Self { line, changes }
    }
}

#[async_trait]
impl Wake for Ear {
    async fn changed(&mut self) {
        tokio::select! {
            biased;
            // The line holds the sender, so this doesn't fail.
            _ = self.changes.changed() => {}
            never = self.line.hear_on() => match never {},
        }
    }
}

impl Hearing {
    /// Returns when something changed, or may have while nobody listened.
    async fn change(&mut self, source: &PgConnectOptions, channel: &str) {
        loop {
            if self.listener.is_some() {
                if self.hear().await {
                    return;
                }
                self.listener = None;
                self.failed("it broke");
            }
            let pause = self.pause;
            let connecting = self
                .connecting
                .get_or_insert_with(|| Box::pin(listen(source.clone(), channel.to_owned(), pause)));
            let connected = connecting.await;
            self.connecting = None;
            match connected {
                Ok(listener) => {
                    self.listener = Some(listener);
                    self.listening_at = SystemClock.elapsed();
                    self.heard_at = self.listening_at;
                    return;
                }
                Err(error) => self.failed(&error.to_string()),
            }
        }
    }

    /// Waits for a notification; `false` when the connection is gone. Silence is counted from call to call,
    /// since calls are dropped.
    async fn hear(&mut self) -> bool {
        while let Some(listener) = &mut self.listener {
            let longest = if self.outage.is_on() { CALM } else { SILENCE };
            let silent = SystemClock.elapsed().saturating_sub(self.heard_at);
            let left = longest.saturating_sub(silent);
            match tokio::time::timeout(left, listener.try_recv()).await {
                Ok(Ok(Some(_))) => {
                    while listener.next_buffered().is_some() {}
                    self.heard();
                    return true;
                }
                Ok(Ok(None) | Err(_)) => return false,
                Err(_) => {
                    let asked = tokio::time::timeout(ANSWER, listener.execute("SELECT 1")).await;
                    if !matches!(asked, Ok(Ok(_))) {
                        return false;
                    }
                    self.heard();
                }
            }
        }
        false
    }

    /// The connection lives. It counts as back once it has lived for a while.
    fn heard(&mut self) {
        self.heard_at = SystemClock.elapsed();
        if self.heard_at.saturating_sub(self.listening_at) >= CALM
            && self.outage.worked(self.heard_at).is_some()
        {
            tracing::info!("the connection for wake-ups is back");
        }
    }

    /// There is no connection. Whoever loses one that was well connects again at once, and then ever later.
    fn failed(&mut self, why: &str) {
        let again = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        match self.outage.failed(SystemClock.elapsed()) {
            News::Begins => {
                self.pause = Duration::ZERO;
                tracing::info!(why, "no connection for wake-ups; until it is back, workers poll");
            }
            News::Lasts(away) => {
                self.pause = again;
                let away = rounded(away);
                tracing::info!(
                    why,
                    ?away,
                    "still no lasting connection for wake-ups; workers poll"
                );
            }
            News::Known => {
                self.pause = again;
                tracing::debug!(why, "again no connection for wake-ups");
            }
        }
    }
}

async fn listen(
    source: PgConnectOptions,
    channel: String,
    pause: Duration,
) -> Result<PgListener, sqlx::Error> {
    tokio::time::sleep(pause).await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(ANSWER)
        .test_before_acquire(false)
        .connect_lazy_with(source);
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(&channel).await?;
    Ok(listener)
}

impl Drop for Hearing {
    fn drop(&mut self) {
        // A listener's own drop spawns a task and panics where no runtime is left to take it.
        if tokio::runtime::Handle::try_current().is_err() {
            std::mem::forget(self.listener.take());
        }
    }
}

/// `jobs_` and a hash (FNV-1a, 64 bits) of the schema's name.
fn channel(schema: &str) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash =
        schema.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("jobs_{hash:016x}")
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("channel", &self.line.channel).finish_non_exhaustive()
    }
}
