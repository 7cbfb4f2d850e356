//! Which files there are, and when each last changed.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

/// A path as it is stored: text where it is text, else its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredPath {
    Text(String),
    Bytes(Vec<u8>),
}

/// What tells that a file has changed: its size and its time of modification in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: i64,
    pub(crate) modified_ns: i64,
}

/// A file below the folder.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: StoredPath,
    pub(crate) stamp: Stamp,
}

/// The regular files below a folder in order of path, without those below `target` and hidden
/// folders and without the database's own. A file that can't be looked at is listed all the same,
/// so that its job says why.
pub(crate) fn below(folder: &Path, database: &Path) -> anyhow::Result<Vec<File>> {
    let folder =
        folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))?;
    let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    let of_database = ["", "-wal", "-shm", "-workers"].map(|end| {
        let mut name = database.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    });
    let is_ours =
        |path: &Path| of_database.iter().any(|ours| path == ours || path.parent() == Some(ours));
    let is_wanted = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().as_bytes();
        let is_skipped =
            entry.file_type().is_dir() && (name.starts_with(b".") || name == b"target");
        entry.depth() == 0 || !is_skipped
    };
    let mut files = Vec::new();
    for entry in WalkDir::new(&folder).sort_by_file_name().into_iter().filter_entry(is_wanted) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                eprintln!("skipped: {error}");
                continue;
            }
        };
        if !entry.file_type().is_file() || is_ours(entry.path()) {
            continue;
        }
        let stamp = entry.metadata().map_or(Stamp { bytes: -1, modified_ns: 0 }, stamp_of);
        files.push(File { path: StoredPath::of(entry.into_path()), stamp });
    }
    Ok(files)
}

/// Reads a file to its end: its digest, and the stamp that it had when it was opened.
pub(crate) fn digest(path: &Path) -> io::Result<(String, Stamp)> {
    let mut file = std::fs::File::open(path)?;
    let stamp = stamp_of(file.metadata()?);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok((hex(&hash.finalize()), stamp))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_or`")]
fn stamp_of(metadata: std::fs::Metadata) -> Stamp {
    let modified_ns = metadata.mtime().saturating_mul(1_000_000_000) + metadata.mtime_nsec();
    Stamp { bytes: i64::try_from(metadata.len()).unwrap_or(i64::MAX), modified_ns }
}

impl StoredPath {
    fn of(path: PathBuf) -> Self {
        match path.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(bytes) => Self::Bytes(bytes.into_vec()),
        }
    }

    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        OsString::from_vec(self.as_bytes().to_vec()).into()
    }

    /// A key of bounded length: two jobs for one file never wait at once.
    pub(crate) fn key(&self) -> String {
        hex(&Sha256::digest(self.as_bytes()))
    }
}
