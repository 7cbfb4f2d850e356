//! Who holds the write lock of a database in WAL mode, so that an error can say so.
//!
//! SQLite locks byte 120 of the `-shm` file for as long as a transaction writes
//! (<https://sqlite.org/walformat.html#wal_locks>); Linux lists such locks in `/proc/locks`. Opening
//! the `-shm` file to ask would drop this process's own locks on it when it is closed again, so only
//! its inode is asked for. Elsewhere nobody is named.

use std::fs;
use std::path::{Path, PathBuf};

const WRITE_LOCK_BYTE: u64 = 120;

/// The process that holds a write lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    /// This one.
    ThisProcess,
    /// Another one.
    Process {
        /// Its number.
        id: u32,
        /// Its name, as far as the operating system tells.
        name: String,
    },
}

/// The holder of a database's write lock; `None` when there is none or nobody can tell.
pub(super) fn holder(database: &Path) -> Option<Holder> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let id = pid(&locks, inode(&beside(database, "-shm"))?)?;
    if id == std::process::id() {
        return Some(Holder::ThisProcess);
    }
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    Some(Holder::Process { id, name: name.trim().to_owned() })
}

/// A file that SQLite or this store keeps beside a database.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|file| file.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

/// Finds the line of the write lock, such as `7: POSIX  ADVISORY  WRITE 811 fd:01:1573 120 120`. Lines
/// of waiters have an arrow.
fn pid(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, first, last] = fields[..] else {
            return None;
        };
        let is_file = file.rsplit(':').next()?.parse() == Ok(inode);
        let first: u64 = first.parse().ok()?;
        let last = last.parse().unwrap_or(u64::MAX);
        let is_write_lock = (first..=last).contains(&WRITE_LOCK_BYTE);
        if is_file && is_write_lock { pid.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_lock_is_told_from_read_locks_and_waiters() {
        let locks = "\
            1: POSIX  ADVISORY  READ 11 fd:01:77 128 128\n\
            2: POSIX  ADVISORY  WRITE 12 fd:01:76 120 120\n\
            3: POSIX  ADVISORY  WRITE 13 fd:01:77 121 121\n\
            4: POSIX  ADVISORY  WRITE 14 fd:01:77 120 120\n\
            4: -> POSIX  ADVISORY  WRITE 15 fd:01:77 120 120\n\
            5: FLOCK  ADVISORY  WRITE 16 fd:01:77 0 EOF\n";
        assert_eq!(pid(locks, 77), Some(14));
        assert_eq!(pid("6: POSIX ADVISORY WRITE 17 fd:01:77 0 EOF", 77), Some(17));
        assert_eq!(pid(locks, 78), None);
    }
}
