//! What the commands know of the application that mounts them.

use crate::Handlers;
use crate::manifest::Manifest;
use crate::registry::Handled;
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
    Some(KnownKind { name: handled.kind.to_string(), version, policy: handled.policy })
}
