//! Which file an address names, and whether a store can live there.
//!
//! Every refusal says why and what to do instead: a store that opens and then loses jobs, or that is
//! another one for each process, is worse than one that does not open.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jobs_core::{StoreError, StoreErrorKind};
use sqlx::sqlite::SqliteConnectOptions;

use super::error::Result;
use super::holder::beside;
use super::line::{LINE, NEXT};
use super::options::Migration;
use super::turn::TURN;

/// File systems that are served over a network or by a guest's host. The write-ahead log needs memory
/// that all its users share, which these do not give (<https://sqlite.org/wal.html>), and locks that
/// hold.
const REMOTE: [&str; 16] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
];

/// Where a store lives: a file whose path has no links left in it, so that every process that opens
/// it agrees on the files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The database.
    pub(super) database: PathBuf,
    /// The folder of the lock files of its workers.
    pub(super) workers: PathBuf,
    /// Whether that folder was made just now.
    is_fresh: bool,
}

impl Location {
    /// Removes a fresh folder again, after the file was found to be no database. One that others
    /// have begun to use stays.
    pub(super) fn leave(&self) {
        let locks = [TURN, LINE, NEXT];
        let only_turns = |mut files: fs::ReadDir| {
            files.all(|file| {
                file.is_ok_and(|file| locks.iter().any(|lock| file.file_name() == *lock))
            })
        };
        if self.is_fresh && fs::read_dir(&self.workers).is_ok_and(only_turns) {
            for lock in locks {
                drop(fs::remove_file(self.workers.join(lock)));
            }
            drop(fs::remove_dir(&self.workers));
        }
    }
}

/// The file that a store has open, to be told from another one under its path.
///
/// SQLite itself goes on writing to a file that was removed, renamed or replaced, as long as it is open: what
/// is acknowledged then is gone with the process (<https://sqlite.org/howtocorrupt.html>, 1.4). With a
/// write-ahead log nothing of SQLite looks, so every write does.
#[derive(Debug, Clone)]
pub(super) struct OpenFile {
    path: PathBuf,
    number: Option<FileNumber>,
}

/// The device and the inode.
type FileNumber = (u64, u64);

impl OpenFile {
    /// The file that is at a path now.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), number: number(path) }
    }

    /// # Errors
    /// [`StoreErrorKind::Configuration`] where the path leads to another file or to none.
    pub(super) fn check(&self) -> Result<()> {
        if self.number.is_none() || number(&self.path) == self.number {
            return Ok(());
        }
        Err(configuration(format!(
            "{} is not the file that was opened: somebody has removed or replaced it, and what is written to \
             the old one is lost. Restart this program, and move or restore a database only while no program \
             has it open",
            self.path.display()
        )))
    }
}

#[cfg(unix)]
fn number(path: &Path) -> Option<FileNumber> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn number(_: &Path) -> Option<FileNumber> {
    None
}

/// Reads `sqlite:jobs.db`, `sqlite://jobs.db` or a bare path.
pub(super) fn options(address: &str) -> Result<SqliteConnectOptions> {
    if address.trim().is_empty() || address == ":memory:" {
        return Err(memory());
    }
    if !address.starts_with("sqlite:") {
        return Ok(SqliteConnectOptions::new().filename(address));
    }
    if address.starts_with("sqlite::memory:") || address.contains("mode=memory") {
        return Err(memory());
    }
    if address.contains("mode=ro") || address.contains("immutable=") {
        let text = "a store writes: remove `mode=ro` and `immutable` from its address";
        return Err(StoreError::new(StoreErrorKind::ReadOnly, text));
    }
    SqliteConnectOptions::from_str(address).map_err(|error| {
        let text = "the address is not one of a SQLite file, such as `sqlite://jobs.db`";
        StoreError::new(StoreErrorKind::Configuration, text).because(error)
    })
}

/// Checks that a file is there which opening may not make.
pub(super) fn check_exists(options: &SqliteConnectOptions, migration: Migration) -> Result<()> {
    let named = options.get_filename();
    if named.as_os_str().is_empty() {
        return Err(configuration(
            "the address names no file; write one, such as `sqlite://jobs.db`".to_owned(),
        ));
    }
    match (migration, fs::metadata(named)) {
        (Migration::Require, Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(configuration(format!(
                "there is no file {}; name an existing one, or make it by `jobs migrate`",
                named.display()
            )))
        }
        (Migration::Require | Migration::Run, _) => Ok(()),
    }
}

/// Checks the file that options name, and makes the folder beside it.
pub(super) fn location(options: &SqliteConnectOptions) -> Result<Location> {
    let named = options.get_filename();
    let is_memory = named.as_os_str().is_empty() || named.to_string_lossy().contains(":memory:");
    if is_memory || named.to_string_lossy().starts_with("file:") {
        return Err(memory());
    }
    let database = resolved(named)?;
    if let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo")
        && let Some(kind) = remote(&mounts, &database)
    {
        return Err(configuration(format!(
            "{} is on a network file system ({kind}), where SQLite's log and locks do not work; \
             put it on a local disk, or use PostgreSQL",
            database.display()
        )));
    }
    let workers = beside(&database, "-workers");
    match fs::create_dir(&workers) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            let folder = database.parent().unwrap_or(&database);
            let text = format!(
                "the folder {} does not take {}, which a store has beside its file: let this user \
                 write in that folder, if only to look into the store",
                folder.display(),
                workers.file_name().unwrap_or_default().display()
            );
            let kind = match error.kind() {
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    StoreErrorKind::ReadOnly
                }
                std::io::ErrorKind::StorageFull => StoreErrorKind::Full,
                _ => StoreErrorKind::Configuration,
            };
            Err(StoreError::new(kind, text).because(error))
        }
        made => Ok(Location { database, workers, is_fresh: made.is_ok() }),
    }
}

fn memory() -> StoreError {
    configuration(
        "a database in memory is another one for every connection and gone with the process; name a \
         file, in a temporary folder for tests, or use the memory store"
            .to_owned(),
    )
}

fn configuration(text: String) -> StoreError {
    StoreError::new(StoreErrorKind::Configuration, text)
}

/// The path without links and relative parts. The file itself need not exist.
fn resolved(named: &Path) -> Result<PathBuf> {
    match fs::metadata(named) {
        Ok(found) if found.is_dir() => {
            return Err(configuration(format!(
                "{} is a folder; name a file in it, such as `jobs.db`",
                named.display()
            )));
        }
        Ok(found) if found.permissions().readonly() => {
            let text = format!("{} is read-only, but a store writes", named.display());
            return Err(StoreError::new(StoreErrorKind::ReadOnly, text));
        }
        Ok(_) => return fs::canonicalize(named).map_err(|error| unreachable_file(named, error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(unreachable_file(named, error)),
    }
    // The file that a link leads to is made, and then has the path that everyone else will find.
    if let Ok(target) = fs::read_link(named) {
        return resolved(&named.parent().unwrap_or(Path::new("")).join(target));
    }
    let parent = match named.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent).map_err(|error| {
        configuration(format!("the folder of {} does not exist; make it first", named.display()))
            .because(error)
    })?;
    let name = named
        .file_name()
        .ok_or_else(|| configuration(format!("{} has no file name", named.display())))?;
    Ok(parent.join(name))
}

fn unreachable_file(named: &Path, error: std::io::Error) -> StoreError {
    configuration(format!("{} can't be reached", named.display())).because(error)
}

/// The kind of the file system that a path lies on, where it is one of the remote ones. Lines are as
/// in proc(5): `36 35 98:0 / /mount/point rw,noatime master:1 - ext4 /dev/sda1 rw`.
fn remote<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (point, kind) = line.split_once(" - ")?;
        let point = point.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&point).then(|| (point.len(), kind.split(' ').next().unwrap_or(kind)))
    };
    // Of equally deep ones the last was mounted over the others.
    let (_, kind) = mounts.lines().filter_map(mount).max_by_key(|(depth, _)| *depth)?;
    REMOTE.contains(&kind).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
        40 22 0:45 / /srv rw shared:5 - nfs4 host:/export rw\n\
        41 40 8:2 / /srv/local\\040disk rw - xfs /dev/sdb1 rw\n";

    #[test]
    fn the_deepest_mount_decides_whether_a_file_is_remote() {
        assert_eq!(remote(MOUNTS, Path::new("/var/jobs.db")), None);
        assert_eq!(remote(MOUNTS, Path::new("/srv/jobs.db")), Some("nfs4"));
        assert_eq!(remote(MOUNTS, Path::new("/srv/local disk/jobs.db")), None);
        assert_eq!(remote(MOUNTS, Path::new("/srvs/jobs.db")), None);
    }
}
