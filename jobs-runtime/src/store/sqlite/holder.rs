//! Who holds the write lock of a database in WAL mode, so that an error can say so.
//!
//! SQLite locks byte 120 of the `-shm` file for as long as a transaction writes
//! (<https://sqlite.org/walformat.html#wal_locks>); Linux lists such locks in `/proc/locks`. Opening
//! the `-shm` file to ask would drop this process's own locks on it when it is closed again, so only
//! its inode is asked for. Which file system the list means is told by this process's own line, since
//! every connection holds byte 128 for as long as it is open: what a file says of its device is
//! another number on some of them. Elsewhere nobody is named.

use std::fs;
use std::path::{Path, PathBuf};

const WRITE_LOCK_BYTE: u64 = 120;
const OPEN_BYTE: u64 = 128;
/// How often the list is read before nobody counts as the holder: it comes by the page, and a lock may be
/// missing where others are taken and dropped between two of them.
const LOOKS: usize = 3;

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
    let own = std::process::id();
    let inode = inode(&beside(database, "-shm"))?;
    let look = |_| pid(&fs::read_to_string("/proc/locks").ok()?, inode, own);
    let id = (0..LOOKS).find_map(look)?;
    if id == own {
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

/// A lock on a file, such as `7: POSIX  ADVISORY  WRITE 811 fd:01:1573 120 120`. Lines of waiters have
/// an arrow, and are none.
struct Lock<'a> {
    writes: bool,
    pid: u32,
    /// Major and minor number of the device, and the inode.
    file: &'a str,
    bytes: std::ops::RangeInclusive<u64>,
}

fn lock(line: &str) -> Option<Lock<'_>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, "POSIX", _, way, pid, file, first, last] = fields[..] else {
        return None;
    };
    let bytes = first.parse().ok()?..=last.parse().unwrap_or(u64::MAX);
    Some(Lock { writes: way == "WRITE", pid: pid.parse().ok()?, file, bytes })
}

/// Finds who writes to the file of that inode which the process `own` has open.
fn pid(locks: &str, inode: u64, own: u32) -> Option<u32> {
    let is_inode = |lock: &Lock<'_>| {
        lock.file.rsplit(':').next().is_some_and(|number| number.parse() == Ok(inode))
    };
    let of_inode = || locks.lines().filter_map(lock).filter(is_inode);
    let ours = of_inode().find(|lock| lock.pid == own && lock.bytes.contains(&OPEN_BYTE))?.file;
    let holds = |lock: &Lock<'_>| lock.writes && lock.bytes.contains(&WRITE_LOCK_BYTE);
    of_inode().find(|lock| lock.file == ours && holds(lock)).map(|lock| lock.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_lock_is_told_from_read_locks_and_waiters_and_other_file_systems() {
        let locks = "\
            1: POSIX  ADVISORY  READ 11 fd:01:77 128 128\n\
            2: POSIX  ADVISORY  WRITE 12 fd:01:76 120 120\n\
            3: POSIX  ADVISORY  WRITE 13 fd:01:77 121 121\n\
            4: POSIX  ADVISORY  WRITE 17 fd:02:77 120 120\n\
            5: POSIX  ADVISORY  WRITE 14 fd:01:77 120 120\n\
            5: -> POSIX  ADVISORY  WRITE 15 fd:01:77 120 120\n\
            6: FLOCK  ADVISORY  WRITE 16 fd:01:77 0 EOF\n\
            7: POSIX  ADVISORY  READ 18 fd:02:77 128 128\n";
        assert_eq!(pid(locks, 77, 11), Some(14));
        assert_eq!(pid(locks, 77, 18), Some(17), "the other file of that inode");
        assert_eq!(pid(locks, 78, 11), None);
        assert_eq!(pid(locks, 77, 19), None, "it has not opened the file");
        let whole = "6: POSIX ADVISORY WRITE 17 fd:01:77 0 EOF";
        assert_eq!(pid(whole, 77, 17), Some(17));
    }
}
