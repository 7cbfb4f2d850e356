//! The files of the lock: `jobs.lock/<kind>/<major>.<minor>.json`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::schema::{Schemas, canonical};

/// What a version of a shape was when it was locked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Locked {
    pub(super) kind: String,
    pub(super) version: String,
    pub(super) readable_by: String,
    pub(super) writes: Value,
    pub(super) reads: Value,
    /// Texts of this version, byte by byte.
    pub(super) samples: Vec<Box<RawValue>>,
}

/// What a file is about: a payload, or the checkpoint beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `2.1.json`
    Payload,
    /// `checkpoint-2.1.json`
    Checkpoint,
}

impl Part {
    fn prefix(self) -> &'static str {
        match self {
            Self::Payload => "",
            Self::Checkpoint => "checkpoint-",
        }
    }
}

impl Locked {
    pub(super) fn schemas(&self) -> Schemas {
        Schemas { writes: canonical(self.writes.clone()), reads: canonical(self.reads.clone()) }
    }
}

/// The folder of a kind.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
    part: Part,
}

impl Folder {
    /// Of a package. A kind is a good file name: lower-case segments joined by dots.
    pub(super) fn of(package: &Path, kind: &str, part: Part) -> Self {
        Self { path: root(package).join(kind), part }
    }

    pub(super) fn file(&self, (major, minor): (u32, u32)) -> PathBuf {
        self.path.join(format!("{}{major}.{minor}.json", self.part.prefix()))
    }

    /// The locked versions, oldest first. Other files are none of ours.
    pub(super) fn versions(&self) -> io::Result<Vec<(u32, u32)>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut versions = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            versions.extend(name.to_str().and_then(|name| self.version(name)));
        }
        versions.sort_unstable();
        Ok(versions)
    }

    fn version(&self, name: &str) -> Option<(u32, u32)> {
        let name = name.strip_prefix(self.part.prefix())?.strip_suffix(".json")?;
        let (major, minor) = name.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    pub(super) fn read(&self, version: (u32, u32)) -> Result<Locked, String> {
        let file = self.file(version);
        let said =
            |error: &dyn std::fmt::Display| format!("can't read {}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| said(&error))?;
        serde_json::from_str(&text).map_err(|error| said(&error))
    }

    /// Writes a file that is not there yet, whole or not at all. One that appears meanwhile stays.
    pub(super) fn write(&self, version: (u32, u32), locked: &Locked) -> Result<PathBuf, String> {
        let file = self.file(version);
        let said = |error: io::Error| format!("can't write {}: {error}", file.display());
        let mut text = serde_json::to_string_pretty(locked).expect("a lock is plain JSON");
        text.push('\n');
        fs::create_dir_all(&self.path).map_err(said)?;
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        fs::write(&partial, text).map_err(said)?;
        // A rename would replace what somebody else has locked meanwhile; a link does not.
        match fs::hard_link(&partial, &file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !file.exists() => {
                // A file system without links.
                fs::rename(&partial, &file).map_err(said)?;
            }
            linked => {
                let removed = fs::remove_file(&partial);
                linked.map_err(said)?;
                removed.map_err(said)?;
            }
        }
        Ok(file)
    }
}

/// The folder of all locks of a package.
pub(super) fn root(package: &Path) -> PathBuf {
    package.join("jobs.lock")
}
