//! Whether workers live, without a clock: a file each, locked by the process that is the worker.
//!
//! 1. The operating system frees the lock at the instant its process ends, however it ends.
//! 2. A worker's row is only ever seen by others while its file is locked: the file is made and
//!    locked before the row is written, under a name that is never used again.
//! 3. A file that is gone proves nothing; someone may have cleared the folder under a living worker,
//!    or moved the database without it. Such a worker is judged by its renewals.
//! 4. A renewal that could not be written to the database leaves a mark in the file: a byte.
//! 5. A locked file may be removed: whoever makes one looks whether it is still there.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobs_core::{Random, StoreError, StoreErrorKind, WorkerId};

use super::error::Result;

/// At most this many files are looked at at a time.
const TIDIED: usize = 10_000;

/// The lock files beside a database, and those that this process holds.
#[derive(Debug)]
pub(super) struct LockFiles {
    folder: PathBuf,
    held: Mutex<HashMap<WorkerId, LockFile>>,
}

/// A file that is locked for as long as this value lives.
#[derive(Debug)]
pub(super) struct LockFile {
    name: String,
    path: PathBuf,
    locked: File,
}

/// What a lock file says of its worker.
#[derive(Debug)]
pub(super) enum Life {
    /// Its process runs.
    Alive {
        /// How many marks it has left.
        marks: u64,
    },
    /// Its process has ended. The file is now locked here, until the worker is taken back.
    Ended(LockFile),
    /// Nothing.
    Unknown,
}

impl LockFiles {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, held: Mutex::new(HashMap::new()) }
    }

    /// Makes and locks a file of a new name.
    pub(super) fn make(&self, random: &dyn Random) -> Result<LockFile> {
        for _ in 0..8 {
            let name = format!("{:016x}{:016x}", random.draw(), random.draw());
            let path = self.folder.join(&name);
            // Someone may have cleared the folder away.
            drop(fs::create_dir(&self.folder));
            let file = File::create_new(&path).map_err(|error| refused(&path, error))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(LockFile { name, path, locked: file }),
                // A sweep has found it between the two steps and removed it.
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(refused(&path, error)),
            }
        }
        let text = "no lock file could be kept: something keeps removing it";
        Err(StoreError::new(StoreErrorKind::Unavailable, text))
    }

    /// What the file of a worker says. Names come from rows, so only well-formed ones are looked at.
    pub(super) fn life(&self, name: &str) -> Life {
        if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Life::Unknown;
        }
        let path = self.folder.join(name);
        let Ok(file) = File::options().write(true).open(&path) else { return Life::Unknown };
        match file.try_lock() {
            Ok(()) => Life::Ended(LockFile { name: name.to_owned(), path, locked: file }),
            Err(TryLockError::WouldBlock) => Life::Alive { marks: marks(&file) },
            Err(TryLockError::Error(_)) => Life::Unknown,
        }
    }

    /// Keeps a worker's file locked until it ends or this store is dropped.
    pub(super) fn hold(&self, worker: WorkerId, file: LockFile) {
        self.held().insert(worker, file);
    }

    /// Leaves a mark in a worker's file, for others to see; whether they can.
    pub(super) fn mark(&self, worker: WorkerId) -> bool {
        self.held().get(&worker).is_some_and(|file| {
            is_at(&file.locked, &file.path) && (&file.locked).write_all(b".").is_ok()
        })
    }

    /// How many marks a worker's file has, where this process holds it.
    pub(super) fn marks(&self, worker: WorkerId) -> u64 {
        self.held().get(&worker).map_or(0, |file| marks(&file.locked))
    }

    /// Removes a worker's file, where this process holds it.
    pub(super) fn release(&self, worker: WorkerId) {
        let held = self.held().remove(&worker);
        if let Some(file) = held {
            file.remove();
        }
    }

    /// Removes the files of workers that are open no more, where this process holds them: others may
    /// have taken them back, or deleted their rows.
    pub(super) fn release_all_but(&self, open: &HashSet<WorkerId>) {
        let ended = |worker: &WorkerId, _: &mut LockFile| !open.contains(worker);
        let ended: Vec<_> = self.held().extract_if(ended).collect();
        for (_, file) in ended {
            file.remove();
        }
    }

    /// Removes what processes left behind that ended between making a file and writing its row, or
    /// between taking a worker back and removing its file, or whose rows were deleted.
    pub(super) fn tidy(&self, open: &HashSet<String>) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
        for name in names.take(TIDIED).filter(|name| !open.contains(name)) {
            match self.life(&name) {
                Life::Ended(file) => file.remove(),
                Life::Alive { .. } | Life::Unknown => {}
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<WorkerId, LockFile>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockFile {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Removes the file while it is still locked. One that stays is in nobody's way.
    pub(super) fn remove(self) {
        drop(fs::remove_file(&self.path));
    }
}

fn marks(file: &File) -> u64 {
    file.metadata().map_or(0, |file| file.len())
}

fn refused(path: &Path, error: std::io::Error) -> StoreError {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull => StoreErrorKind::Full,
        std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
            StoreErrorKind::ReadOnly
        }
        std::io::ErrorKind::Unsupported => StoreErrorKind::Configuration,
        _ => StoreErrorKind::Unavailable,
    };
    let text =
        format!("{} can't be made and locked; workers need it to be told alive", path.display());
    StoreError::new(kind, text).because(error)
}

/// Whether a path still leads to an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |file: fs::Metadata| (file.dev(), file.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(path)) => number(file) == number(path),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
