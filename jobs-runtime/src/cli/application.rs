//! What the commands know of the application that mounts them.

use crate::Handlers;
use crate::manifest::Manifest;
use crate::registry::{Handled, ReadPayload, StoredText};
use jobs_core::{Policy, Version};

/// The kinds of an application; of none in the plain binary `jobs`.
#[derive(Debug, Clone, Default)]
pub struct Application {
    kinds: Vec<KnownKind>,
    manifest: Option<Manifest>,
}

/// A kind that the application handles.
#[derive(Debug, Clone)]
pub(super) struct KnownKind {
    pub(super) name: String,
    /// The newest version that this build reads.
    pub(super) version: Version,
    pub(super) policy: Policy,
    read: ReadPayload,
}

impl KnownKind {
    /// Reads a payload of a version as the kind's type, and answers the unique key that it makes of its own
    /// fields.
    pub(super) fn read(&self, version: Version, text: &str) -> Result<Option<String>, String> {
        (self.read)(StoredText { major: version.major, text })
    }
}

impl Application {
    /// The application that handles these kinds.
    pub fn of<S>(handlers: &Handlers<S>) -> Self {
        let kinds = handlers.all().iter().filter_map(known).collect();
        Self { kinds, manifest: Some(Manifest::of(handlers)) }
    }

    pub(super) fn kind(&self, name: &str) -> Option<&KnownKind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// What it says about itself; `None` in the plain binary `jobs`.
    pub(super) fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }
}

fn known<S>(handled: &Handled<S>) -> Option<KnownKind> {
    let newest = handled.lines.iter().max()?;
    let version = Version { major: newest.major, minor: newest.minor, patch: 0 };
    let (name, policy, read) = (handled.kind.to_string(), handled.policy, handled.read);
    Some(KnownKind { name, version, policy, read })
}
