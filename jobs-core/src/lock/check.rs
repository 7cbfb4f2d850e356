//! One shape against its locks.

use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::diff::{Bump, Change, diff};
use super::file::{Folder, Locked, Part, root};
use super::sample;
use super::schema::Schemas;
use crate::job::Versioned;
use crate::version::Line;

/// One shape, as the check sees it.
#[derive(Debug)]
pub struct Subject {
    /// The type, for messages.
    pub type_name: &'static str,
    /// The kinds under which it is stored, its own first.
    pub kinds: Vec<&'static str>,
    /// A payload or a checkpoint.
    pub part: Part,
    /// As which it is written.
    pub version: (u32, u32),
    /// The oldest reader that it is vouched for.
    pub min_reader: (u32, u32),
    /// What the build reads.
    pub lines: Vec<Line>,
    /// Its schemas, where the type says them.
    pub schemas: Option<Schemas>,
    /// Texts of the author's own.
    pub samples: Vec<String>,
    /// Decodes a text of a major as a stored row is, and writes what became of it.
    pub again: fn(u32, &str) -> Result<String, String>,
}

/// What a run of the check may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only compare.
    Check,
    /// Write what is missing.
    Update,
    /// Only compare, and say so: the machine's result goes nowhere.
    Ci,
}

impl Subject {
    /// A shape of these kinds, the own one first.
    pub fn of<T: Versioned>(
        kinds: &[&'static str],
        part: Part,
        schemas: Option<Schemas>,
        samples: Vec<String>,
    ) -> Self {
        let (version, reader) = (T::VERSION, T::MIN_READER);
        Self {
            type_name: std::any::type_name::<T>(),
            kinds: kinds.to_vec(),
            part,
            version: (version.major, version.minor),
            min_reader: (reader.major, reader.minor),
            lines: T::lines(),
            schemas,
            samples,
            again: |major, text| {
                let value = T::decode(major, text).map_err(|error| crate::chain(&error))?;
                value.encode().map_err(|error| crate::chain(&error))
            },
        }
    }

    /// The body of an emitted test.
    ///
    /// # Panics
    /// When the check fails; the message says what to do.
    pub fn verify(&self, compiled_in: &str) {
        // Cargo says at run time where the package is, also where it was moved after the build.
        let package = std::env::var("CARGO_MANIFEST_DIR");
        let package = package.unwrap_or_else(|_| compiled_in.to_owned());
        let is_set = |name: &str| {
            std::env::var(name).is_ok_and(|it| !["", "0", "false"].contains(&it.as_str()))
        };
        let mode = match std::env::var("JOBS_LOCK").as_deref() {
            _ if is_set("CI") => Mode::Ci,
            Ok("update") => Mode::Update,
            Ok("") | Err(_) => Mode::Check,
            Ok(other) => panic!("JOBS_LOCK is `{other}`; write `update`, or leave it unset"),
        };
        if let Err(problems) = self.check(Path::new(&package), mode) {
            panic!("{problems}");
        }
    }

    /// Compares the shape with its locks, and writes the lock of a new version where it may.
    ///
    /// # Errors
    /// All that is wrong and what to do about it, for a person.
    pub fn check(&self, package: &Path, mode: Mode) -> Result<(), String> {
        let Some(schemas) = &self.schemas else {
            let takes_part = root(package).is_dir() || mode == Mode::Update;
            return if takes_part { Err(self.undescribed()) } else { Ok(()) };
        };
        let folder = Folder::of(package, self.kinds[0], self.part);
        let locked = folder
            .versions()
            .map_err(|error| format!("can't list the locks of `{}`: {error}", self.kinds[0]))?;
        let mut problems = self.replays(package);
        if locked.contains(&self.version) {
            problems.extend(self.drift(&folder, schemas)?);
        } else {
            problems.extend(self.step(&folder, &locked, schemas)?);
        }
        problems.extend(self.proof(&folder, &locked, schemas)?);
        if problems.is_empty() && !locked.contains(&self.version) {
            problems.extend(self.write(&folder, schemas, mode)?);
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(format!("{}\n  {}", self.title(), problems.join("\n  ")))
    }

    fn title(&self) -> String {
        let (major, minor) = self.version;
        let of = match self.part {
            Part::Payload => "",
            Part::Checkpoint => "the checkpoint of ",
        };
        format!("{of}`{}` {major}.{minor} ({}):", self.kinds[0], self.type_name)
    }

    fn undescribed(&self) -> String {
        format!(
            "{}\n  its schema is unknown, so its drift can't be checked: add \
             `#[cfg_attr(test, derive(schemars::JsonSchema))]` to the type and to the types in it",
            self.title()
        )
    }

    /// The version is locked: nothing may have changed.
    fn drift(&self, folder: &Folder, schemas: &Schemas) -> Result<Vec<String>, String> {
        let locked = folder.read(self.version)?;
        let changes = self.changes(&locked, schemas);
        let mut problems = lines_of(&changes);
        if let Some(bump) = changes.iter().map(|change| change.class.bump()).max() {
            problems.push(self.advice(bump, folder));
            return Ok(problems);
        }
        for sample in &locked.samples {
            let text = sample.get();
            if let Ok(again) = (self.again)(self.version.0, text)
                && !is_same_json(text, &again)
            {
                problems.push(format!(
                    "the sample {text} is now written as {again}: changed representation, which \
                     needs a major"
                ));
                problems.push(self.advice(Bump::Major, folder));
            }
        }
        Ok(problems)
    }

    /// The version is new: what changed since the one before must fit the step.
    fn step(
        &self,
        folder: &Folder,
        locked: &[(u32, u32)],
        schemas: &Schemas,
    ) -> Result<Vec<String>, String> {
        let before = locked.iter().rev().find(|it| **it < self.version);
        // Another major has another shape, and an upcast that the samples go through.
        let Some(before) = before.filter(|before| before.0 == self.version.0) else {
            return Ok(Vec::new());
        };
        let changes = self.changes(&folder.read(*before)?, schemas);
        let breaking: Vec<Change> =
            changes.into_iter().filter(|change| change.class.bump() == Bump::Major).collect();
        let mut problems = lines_of(&breaking);
        if !problems.is_empty() {
            problems.push(format!("compared with {}.{}, which is locked", before.0, before.1));
            problems.push(self.advice(Bump::Major, folder));
        }
        Ok(problems)
    }

    /// `readable_by` is a promise about older readers: each locked one in its range must keep it.
    fn proof(
        &self,
        folder: &Folder,
        locked: &[(u32, u32)],
        schemas: &Schemas,
    ) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        if self.min_reader == self.version {
            return Ok(problems);
        }
        let (major, minor) = self.min_reader;
        let own = format!("{}.{}", self.version.0, self.version.1);
        if !locked.contains(&self.min_reader) {
            problems.push(format!(
                "`readable_by = \"{major}.{minor}\"` is unproven: {major}.{minor} has no lock; \
                 leave it out, or name a version that is locked"
            ));
        }
        for reader in locked.iter().filter(|it| **it >= self.min_reader && **it < self.version) {
            let changes = self.changes(&folder.read(*reader)?, schemas);
            for change in changes.iter().filter(|change| !change.is_readable_by_older()) {
                let why = if change.older_denies_unknown {
                    format!("`{}`: that reader denies unknown fields", change.path)
                } else {
                    format!("`{}`: {}", change.path, change.class.as_str())
                };
                problems.push(format!(
                    "`readable_by = \"{major}.{minor}\"` is not true, {}.{} can't read this \
                     shape: {why}; write `readable_by = \"{own}\"` or leave it out",
                    reader.0, reader.1,
                ));
            }
        }
        Ok(problems)
    }

    /// The samples of every locked version that this build accepts, through the real decode path.
    fn replays(&self, package: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        for kind in &self.kinds {
            let folder = Folder::of(package, kind, self.part);
            let versions = match folder.versions() {
                Ok(versions) => versions,
                Err(error) => {
                    problems.push(format!("can't read the locks of `{kind}`: {error}"));
                    continue;
                }
            };
            for version in versions {
                let is_accepted = |line: &Line| line.major == version.0 && line.minor >= version.1;
                if !self.lines.iter().any(is_accepted) {
                    continue;
                }
                let locked = match folder.read(version) {
                    Ok(locked) => locked,
                    Err(error) => {
                        problems.push(error);
                        continue;
                    }
                };
                for sample in locked.samples {
                    if let Err(error) = (self.again)(version.0, sample.get()) {
                        problems.push(format!(
                            "a row of `{kind}` {}.{} no longer decodes: {error}: {}; this build \
                             says that it reads it",
                            version.0,
                            version.1,
                            sample.get()
                        ));
                    }
                }
            }
        }
        problems
    }

    fn write(&self, folder: &Folder, schemas: &Schemas, mode: Mode) -> Result<Vec<String>, String> {
        let (major, minor) = self.version;
        match mode {
            Mode::Update => {}
            Mode::Check => {
                return Ok(vec![format!("{major}.{minor} is not locked yet: {}", RUN)]);
            }
            Mode::Ci => {
                return Ok(vec![format!(
                    "{major}.{minor} is not locked, and nothing is written where `CI` is set: on \
                     your machine, {RUN}"
                )]);
            }
        }
        let mut samples = self.samples.clone();
        if samples.is_empty() {
            let made = sample::samples(&schemas.writes).into_iter();
            samples = made.filter_map(|it| (self.again)(major, &it.to_string()).ok()).collect();
            samples.dedup();
        }
        let raw = |text| RawValue::from_string(text).expect("an encoded value is JSON");
        let locked = Locked {
            kind: self.kinds[0].to_owned(),
            version: format!("{major}.{minor}"),
            readable_by: format!("{}.{}", self.min_reader.0, self.min_reader.1),
            writes: schemas.writes.clone(),
            reads: schemas.reads.clone(),
            samples: samples.into_iter().map(raw).collect(),
        };
        let file = folder.write(self.version, &locked)?;
        eprintln!("locked {} {}; commit {}", locked.kind, locked.version, file.display());
        if locked.samples.is_empty() {
            eprintln!(
                "no sample of {} could be made up: implement `jobs_core::lock::Samples` for it \
                 and lock it again, or its custom serialisation stays unchecked",
                self.type_name
            );
        }
        Ok(Vec::new())
    }

    fn changes(&self, older: &Locked, newer: &Schemas) -> Vec<Change> {
        let is_alias = |path: &str, from: &str, to: &str| {
            let mut texts = older.samples.iter().map(|sample| sample.get());
            texts.any(|text| self.is_moved(text, path, from, to))
        };
        diff(&older.schemas(), newer, &is_alias)
    }

    /// Whether what a sample has under one name is written under another once it was read.
    fn is_moved(&self, sample: &str, path: &str, from: &str, to: &str) -> bool {
        let Ok(again) = (self.again)(self.version.0, sample) else { return false };
        let at = |text: &str, name: &str| {
            let value: Value = serde_json::from_str(text).ok()?;
            place(&value, path)?.get(name).cloned()
        };
        at(sample, from).is_some_and(|it| !it.is_null() && at(&again, to) == Some(it))
    }

    fn advice(&self, bump: Bump, folder: &Folder) -> String {
        let (major, minor) = self.version;
        let next = match bump {
            Bump::Minor => format!("write `version = \"{major}.{}.0\"`", minor + 1),
            Bump::Major => format!(
                "write `version = \"{}.0.0\"`, keep the old shape as a type with \
                 `#[derive({})]` and name it as `previous`",
                major + 1,
                match self.part {
                    Part::Payload => "PastJob",
                    Part::Checkpoint => "Checkpoint",
                }
            ),
        };
        let file = folder.file(self.version);
        format!(
            "{next}; then {RUN}. If {major}.{minor} was never deployed, delete {} instead",
            file.display()
        )
    }
}

/// The command that locks.
const RUN: &str = "run `JOBS_LOCK=update cargo test jobs_lock` and commit `jobs.lock`";

fn lines_of(changes: &[Change]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

fn is_same_json(left: &str, right: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    read(left) == read(right)
}

/// The first value at a path as [`Change::path`] writes it.
fn place<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut at = value;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (name, items) = match step.find(['[', '{']) {
            Some(n) => step.split_at(n),
            None => (step, ""),
        };
        if !name.is_empty() {
            // The name of a tagged variant is no step of the value.
            at = at.get(name).or(Some(at))?;
        }
        for item in items.split_inclusive([']', '}']) {
            at = match item.trim_matches(['[', ']', '{', '}']) {
                "" if item.starts_with('[') => at.get(0)?,
                "" => at.as_object()?.values().next()?,
                n => at.get(n.parse::<usize>().ok()?)?,
            };
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests;
