//! Taking the write lock of a file that several processes write.
//!
//! 1. No caller ever sees `busy` because others write; only a transaction that stays open for longer
//!    than the stated bounds fails a write, and the error says who holds it.
//! 2. Who waits is seen: a writer that has work without end gives way after each batch, and a
//!    transaction of a user, whose end nobody here sees, begins behind those who wait.
//!
//! SQLite has no queue for its write lock: whoever asks at the right moment gets it, and a process
//! that commits and begins again at once starves the others for seconds. So a waiter holds a shared
//! lock on a file beside the database, and a writer that can't take that lock exclusively knows that
//! someone waits. The operating system drops the lock with its holder, so nothing needs cleaning up.
//!
//! Rejected: SQLite's own busy handler. It sleeps up to 100 ms between two tries, and nothing can see
//! that it waits.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jobs_core::{Random, StoreError, StoreErrorKind, below};
use sqlx::SqliteConnection;
use tokio::time::{Sleep, sleep};

use super::error::{During, Result, is_busy};
use super::finish::finish;
use super::holder::{Holder, beside, holder};
use super::sql;

/// A write waits at most this long for another process's transaction.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A write waits at most this long for a transaction that its own process holds open: the code that
/// is to end it may be waiting for this very write.
pub(super) const LONGEST_OWN_WAIT: Duration = Duration::from_secs(5);

/// The name of the file that shows who waits.
pub(super) const TURN: &str = "turn";

const FIRST_RETRY_US: u64 = 500;
const RETRY_SPREAD_US: u64 = 2_000;
const GIVE_WAY_US: u64 = 3_000;

/// The place of one waiter in front of the write lock.
#[derive(Debug)]
pub(super) struct Turn {
    file: File,
    database: PathBuf,
    random: Arc<dyn Random>,
}

impl Turn {
    /// # Errors
    /// Where the folder takes no files.
    pub(super) fn open(folder: &Path, database: &Path, random: Arc<dyn Random>) -> Result<Self> {
        Ok(Self { file: opened(folder, TURN)?, database: database.to_owned(), random })
    }

    /// What an attempt that was busy waits by, before the next; in all not longer than `within`.
    pub(super) const fn patience<'a>(&'a self, doing: &'a str, within: Duration) -> Patience<'a> {
        Patience { turn: self, doing, within, begun: None }
    }

    /// Begins a transaction that may write.
    ///
    /// # Cancel safety
    /// None: a dropped call may leave the connection inside a transaction.
    pub(super) async fn begin(&self, connection: &mut SqliteConnection) -> Result<()> {
        const DOING: &str = "waiting for the write lock";
        let mut patience = self.patience(DOING, LONGEST_WAIT);
        loop {
            match finish(connection, sqlx::query(sql::BEGIN)).await {
                Err(error) if is_busy(&error) => patience.wait().await?,
                answer => return answer.map(drop).during(DOING),
            }
        }
    }

    /// Lets those who wait have the write lock for a moment.
    pub(super) async fn give_way(&self) {
        if self.is_awaited() {
            self.sleep(GIVE_WAY_US, GIVE_WAY_US / 2).await;
        }
    }

    /// Whether others wait for the write lock.
    fn is_awaited(&self) -> bool {
        match self.file.try_lock() {
            Ok(()) => {
                drop(self.file.unlock());
                false
            }
            Err(TryLockError::WouldBlock) => true,
            // Where files can't be locked nobody can say that he waits.
            Err(TryLockError::Error(_)) => false,
        }
    }

    async fn sleep(&self, least_us: u64, spread_us: u64) {
        let micros = least_us + below(self.random.draw(), spread_us);
        sleep(Duration::from_micros(micros)).await;
    }

    fn log(&self) -> Option<Log> {
        let file = std::fs::metadata(beside(&self.database, "-wal")).ok()?;
        Some((file.len(), file.modified().ok()?))
    }

    fn busy(doing: &str, waited: Duration, holder: Option<Holder>) -> StoreError {
        let seconds = waited.as_secs_f32();
        let text = match holder {
            Some(Holder::ThisProcess) => format!(
                "failed while {doing}: this process itself has held a write transaction open for \
                 {seconds} s; end it before waiting for another write, or make the write inside it \
                 (`in_tx`, `checkpoint_in`, `done_in`)"
            ),
            Some(Holder::Process { id, name }) => format!(
                "failed while {doing}: process {id} ({name}) has held a write transaction open for \
                 {seconds} s; let it commit, or stop it"
            ),
            None => format!(
                "failed while {doing}: others held write transactions open for {seconds} s; keep them \
                 short"
            ),
        };
        StoreError::new(StoreErrorKind::Busy, text)
    }
}

/// A file of this name that writers lock.
pub(super) fn opened(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(name);
    // Someone may have cleared the folder away.
    drop(std::fs::create_dir(folder));
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    file.map_err(|error| refused(&path, error))
}

/// Says what is in the way: a file that is another user's, a folder that takes none, or what passes.
fn refused(path: &Path, error: std::io::Error) -> StoreError {
    use std::io::ErrorKind;
    let folder = path.parent().unwrap_or(path).display();
    let name = path.file_name().unwrap_or_default().display();
    let kind = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreErrorKind::ReadOnly,
        ErrorKind::NotFound | ErrorKind::NotADirectory => StoreErrorKind::Configuration,
        ErrorKind::StorageFull => StoreErrorKind::Full,
        _ => StoreErrorKind::Unavailable,
    };
    let text = match kind {
        StoreErrorKind::ReadOnly if path.exists() => format!(
            "{} is not writable for this user, another one made it: run all programs that use the \
             store as one user, or let this one write the database and everything beside it",
            path.display()
        ),
        StoreErrorKind::ReadOnly | StoreErrorKind::Configuration => format!(
            "the folder {folder} takes no file {name}: whoever uses the store, if only to look, must be \
             able to write there"
        ),
        StoreErrorKind::Full => {
            format!("the folder {folder} takes no file {name}: the disk is full")
        }
        _ => format!(
            "{} can't be opened; has this process too many files open (`ulimit -n`)?",
            path.display()
        ),
    };
    StoreError::new(kind, text).because(error)
}

/// The waiting of one call, over all its attempts.
pub(super) struct Patience<'a> {
    turn: &'a Turn,
    doing: &'a str,
    within: Duration,
    begun: Option<Begun<'a>>,
}

struct Begun<'a> {
    own: Pin<Box<Sleep>>,
    last: Pin<Box<Sleep>>,
    /// What the log was like when `own` began.
    log: Option<Log>,
    waiting: Option<Waiting<'a>>,
}

/// The size of a log and when it was written. Every commit changes it, and a transaction that only
/// stays open does not.
type Log = (u64, SystemTime);

impl Patience<'_> {
    /// Waits a moment where others wait already, before the first attempt: who ends one transaction and
    /// begins the next at once would else be in before them every time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) async fn stand_behind_others(&mut self) -> Result<()> {
        if self.turn.is_awaited() { self.wait().await } else { Ok(()) }
    }

    /// Waits a moment.
    ///
    /// # Errors
    /// [`StoreErrorKind::Busy`] at the end of the stated bounds.
    pub(super) async fn wait(&mut self) -> Result<()> {
        let turn = self.turn;
        let begun = self.begun.get_or_insert_with(|| Begun {
            own: Box::pin(sleep(LONGEST_OWN_WAIT)),
            last: Box::pin(sleep(self.within)),
            log: turn.log(),
            waiting: None,
        });
        if begun.waiting.is_none() {
            begun.waiting = Waiting::announce(&turn.file);
        }
        tokio::select! {
            biased;
            () = &mut begun.last => {
                return Err(Turn::busy(self.doing, self.within, holder(&turn.database)));
            }
            () = &mut begun.own => {
                let log = turn.log();
                if log == begun.log && holder(&turn.database) == Some(Holder::ThisProcess) {
                    let own = Some(Holder::ThisProcess);
                    return Err(Turn::busy(self.doing, LONGEST_OWN_WAIT, own));
                }
                begun.log = log;
                begun.own = Box::pin(sleep(LONGEST_OWN_WAIT));
            }
            () = turn.sleep(FIRST_RETRY_US, RETRY_SPREAD_US) => {}
        }
        Ok(())
    }
}

/// Holds the shared lock that tells writers of a waiter.
struct Waiting<'a>(&'a File);

impl<'a> Waiting<'a> {
    /// `None` when a writer is looking just now, or where files can't be locked: a later try tells.
    fn announce(file: &'a File) -> Option<Self> {
        file.try_lock_shared().is_ok().then_some(Self(file))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Closing the file drops the lock too, so a failure here only makes a writer polite for
        // nothing.
        drop(self.0.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_that_passes_is_told_from_a_folder_that_takes_no_files() {
        let told = |code: i32| {
            let error = std::io::Error::from_raw_os_error(code);
            let error = refused(Path::new("/nowhere/jobs.db-workers/turn"), error);
            (error.kind(), error.to_string())
        };
        let (denied, read_only, not_a_folder) = (13, 30, 20);
        assert_eq!(told(denied).0, StoreErrorKind::ReadOnly);
        assert_eq!(told(read_only).0, StoreErrorKind::ReadOnly);
        assert_eq!(told(not_a_folder).0, StoreErrorKind::Configuration);
        let (no_space, too_many_files) = (28, 24);
        assert_eq!(told(no_space).0, StoreErrorKind::Full);
        let (kind, text) = told(too_many_files);
        assert_eq!(kind, StoreErrorKind::Unavailable);
        assert!(text.contains("too many files"), "{text}");
    }
}
