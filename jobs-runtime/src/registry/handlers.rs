//! The handlers of a worker, as the registry has checked them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jobs_core::{Job, Ladder, Line, MinReader, Policy, Reader, Schedule, Versioned};

use super::around::{self, Around};
use super::erased::{Erased, Prepared};
#[cfg(feature = "cli")]
use super::erased::{ReadPayload, read_payload};
use crate::context::Parts;
use crate::handler::{JobError, Outcome};
use crate::manifest::ProducedKind;
use crate::run::RunKind;

/// The handlers of a worker, checked.
pub struct Handlers<S> {
    pub(super) handled: Vec<Handled<S>>,
    pub(super) by_kind: HashMap<String, Known>,
    pub(super) schedules: Vec<Schedule>,
    pub(super) produced: Vec<ProducedKind>,
    pub(super) around: Vec<Arc<Around<S>>>,
}

/// One kind and how its jobs are run.
pub(crate) struct Handled<S> {
    pub(crate) kind: Arc<str>,
    pub(crate) of: Arc<RunKind>,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) lines: Vec<Line>,
    pub(crate) checkpoint_lines: Vec<Line>,
    /// Which reader the author of its checkpoint vouches for; `None`: it saves none.
    pub(crate) checkpoint_reader: Option<MinReader>,
    pub(crate) policy: Policy,
    pub(crate) ladder: Ladder,
    pub(crate) type_name: &'static str,
    /// What this build enqueues of it.
    pub(crate) newest: ProducedKind,
    /// Reads a payload without running it.
    #[cfg(feature = "cli")]
    pub(crate) read: ReadPayload,
    pub(crate) erased: Box<dyn Erased<S>>,
}

/// What a build knows of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known {
    /// Where its handler stands.
    Handled(usize),
    /// It is gone for good.
    Retired,
}

impl<S> Handled<S> {
    pub(super) fn of<J: Job>(erased: Box<dyn Erased<S>>, ladder: Ladder) -> Self {
        let kind: Arc<str> = J::KIND.into();
        let checkpoint_lines = J::Checkpoint::lines();
        let saves = !checkpoint_lines.is_empty();
        Self {
            of: Arc::new(RunKind::new(kind.clone(), &J::POLICY)),
            kind,
            aliases: J::ALIASES,
            lines: J::lines(),
            checkpoint_lines,
            checkpoint_reader: saves.then_some(J::Checkpoint::MIN_READER),
            policy: J::POLICY,
            ladder,
            type_name: std::any::type_name::<J>(),
            newest: ProducedKind::of::<J>(),
            #[cfg(feature = "cli")]
            read: read_payload::<J>,
            erased,
        }
    }
}

impl<S> Handlers<S> {
    /// How this build reads a kind.
    pub(crate) fn reader(&self, kind: &str) -> Reader<'_> {
        self.known(kind).0
    }

    /// What this build knows of a kind, and its handler where it has one.
    pub(crate) fn known(&self, kind: &str) -> (Reader<'_>, Option<&Handled<S>>) {
        match self.by_kind.get(kind) {
            None => (Reader::Unknown, None),
            Some(Known::Retired) => (Reader::Retired, None),
            Some(Known::Handled(at)) => {
                let handled = &self.handled[*at];
                (Reader::Reads(&handled.lines), Some(handled))
            }
        }
    }

    /// The handler of a kind, where this build has one.
    pub(crate) fn handled(&self, kind: &str) -> Option<&Handled<S>> {
        self.known(kind).1
    }

    pub(crate) fn all(&self) -> &[Handled<S>] {
        &self.handled
    }

    pub(crate) fn schedules(&self) -> &[Schedule] {
        &self.schedules
    }

    pub(crate) fn produced(&self) -> &[ProducedKind] {
        &self.produced
    }

    pub(crate) fn retired(&self) -> impl Iterator<Item = &str> {
        let is_retired = |known: &Known| match known {
            Known::Retired => true,
            Known::Handled(_) => false,
        };
        let kinds = self.by_kind.iter().filter(move |(_, known)| is_retired(known));
        kinds.map(|(kind, _)| kind.as_str())
    }

    /// A decoded job inside its middleware.
    pub(crate) fn wrapped(
        &self,
        state: &S,
        prepared: Prepared<S>,
        parts: Parts,
    ) -> BoxFuture<'static, Result<Outcome, JobError>>
    where
        S: Clone + Send + Sync + 'static,
    {
        around::wrapped(&self.around, state, prepared, parts)
    }
}

impl<S> fmt::Debug for Handlers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.by_kind.keys().collect();
        f.debug_struct("Handlers").field("kinds", &kinds).finish_non_exhaustive()
    }
}
