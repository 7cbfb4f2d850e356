//! What a build says about itself: the kinds that it reads, handles, produces and has retired, and
//! what it enqueues by the clock.
//!
//! Every worker publishes it with its lease, and a program that only enqueues when it is opened with
//! [`JobsBuilder::produces`](crate::JobsBuilder::produces). Two of them side by side tell what a
//! deploy does to the jobs of the other; [`check`] says it.

mod check;
mod finding;

use jobs_core::store::WorkerRecord;
use jobs_core::{
    Job, Line, MinReader, NewJob, OldCheckpoint, Reader, Route, RouteVerdict, Schedule, Stamp,
    Verdict, Version, Versioned, judge,
};
use serde::{Deserialize, Serialize};

pub use self::check::{check, diff};
pub use self::finding::{Answer, Code, Finding, Order, Severity};
use crate::registry::{Handled, Handlers};

/// What a build says about itself. As JSON it keeps its form: unknown fields are ignored and absent
/// ones are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// What it handles, in order of kind.
    #[serde(default)]
    pub handles: Vec<HandledKind>,
    /// What it says that it enqueues without handling it, in order of kind.
    #[serde(default)]
    pub produces: Vec<ProducedKind>,
    /// The kinds that it has retired.
    #[serde(default)]
    pub retired: Vec<String>,
    /// What it enqueues by the clock, in order of name.
    #[serde(default)]
    pub schedules: Vec<ScheduledKind>,
    /// How long the worker that published it may take to drain: what its supervisor grants, less the delay
    /// before the signal. Nothing of the build, so it is absent from what is printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
}

/// A kind that a build handles, and so may enqueue as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandledKind {
    /// What it enqueues of the kind.
    #[serde(flatten)]
    pub newest: ProducedKind,
    /// Other kinds that it reads as this one.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The lines that it reads, oldest first, in the words of the log: `1.0 to 1.4`.
    pub reads: Vec<String>,
    /// The same of its checkpoint, which it saves as the last of them; none where it saves none.
    #[serde(default)]
    pub checkpoint_reads: Vec<String>,
    /// The oldest reader that the checkpoint's author vouches for; empty: no older one.
    #[serde(default)]
    pub checkpoint_readable_by: String,
    /// Whether a job whose checkpoint is too old begins anew instead of being given back.
    #[serde(default)]
    pub restarts: bool,
    /// As the policy says.
    #[serde(default)]
    pub priority: i16,
    /// As the policy says.
    #[serde(default)]
    pub max_failures: u32,
    /// As the policy says.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A kind that a build enqueues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducedKind {
    /// The kind.
    pub kind: String,
    /// As which version.
    #[serde(default)]
    pub version: String,
    /// The oldest reader that its author vouches for.
    #[serde(default)]
    pub readable_by: String,
    /// Into which queue.
    #[serde(default)]
    pub queue: String,
    /// Stands for the shape as it is written; empty where it is unknown.
    #[serde(default)]
    pub fingerprint: String,
}

/// A kind that is enqueued by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledKind {
    /// The schedule's name.
    pub name: String,
    /// When it ticks, as it is declared.
    #[serde(default)]
    pub when: String,
    /// What each tick enqueues.
    #[serde(flatten)]
    pub enqueues: ProducedKind,
}

impl Manifest {
    /// What a registry says.
    pub fn of<S>(handlers: &Handlers<S>) -> Self {
        let mut handles: Vec<_> = handlers.all().iter().map(handled).collect();
        handles.sort_by(|a, b| a.newest.kind.cmp(&b.newest.kind));
        let mut retired: Vec<_> = handlers.retired().map(str::to_owned).collect();
        retired.sort_unstable();
        let schedules = handlers.schedules().iter().filter_map(ScheduledKind::of);
        let mut schedules: Vec<_> = schedules.collect();
        schedules.sort_by(|a, b| a.name.cmp(&b.name));
        let produces = handlers.produced().to_vec();
        Self { handles, produces, retired, schedules, drain_ms: None }
    }

    /// Reads a manifest that was published or printed.
    ///
    /// # Errors
    /// That of JSON.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// As JSON text.
    ///
    /// # Panics
    /// Never: it is plain JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a manifest is plain JSON")
    }

    /// What the build knows of a kind, which may be an alias.
    pub fn handled(&self, kind: &str) -> Option<&HandledKind> {
        let is_it = |it: &&HandledKind| {
            it.newest.kind == kind || it.aliases.iter().any(|alias| alias == kind)
        };
        self.handles.iter().find(is_it)
    }

    /// Whether a worker of the build ends such a job instead of giving it back: it runs it, or finds
    /// it retired or malformed.
    pub fn takes(&self, kind: &str, version: &str, min_reader: Option<&str>) -> bool {
        let Ok(stamp) = Stamp::parse(version, min_reader) else { return true };
        match self.judge(kind, stamp) {
            Verdict::Run
            | Verdict::Upcast { .. }
            | Verdict::TolerantRead { .. }
            | Verdict::Retired => true,
            Verdict::Refuse(_) => false,
        }
    }

    fn judge(&self, kind: &str, stamp: Stamp) -> Verdict {
        if self.retired.iter().any(|retired| retired == kind) {
            return judge(stamp, Reader::Retired);
        }
        let lines = self.handled(kind).map(HandledKind::lines).unwrap_or_default();
        judge(stamp, if lines.is_empty() { Reader::Unknown } else { Reader::Reads(&lines) })
    }

    /// What a worker of the build can tell of a route.
    pub(crate) fn route(&self, route: &Route) -> RouteVerdict {
        let lines = route.parts().and_then(|(kind, _)| self.handled(kind)).map(HandledKind::lines);
        let lines = lines.unwrap_or_default();
        route.judge(|kind| {
            if self.retired.iter().any(|retired| retired == kind) {
                Reader::Retired
            } else if lines.is_empty() {
                Reader::Unknown
            } else {
                Reader::Reads(&lines)
            }
        })
    }

    /// All that it may enqueue, and whether it handles that too.
    fn enqueues(&self) -> impl Iterator<Item = (&ProducedKind, bool)> {
        let handled = self.handles.iter().map(|kind| (&kind.newest, true));
        let scheduled = self.schedules.iter().map(|schedule| &schedule.enqueues);
        let foreign = scheduled.filter(|kind| self.handled(&kind.kind).is_none());
        handled.chain(self.produces.iter().chain(foreign).map(|kind| (kind, false)))
    }
}

impl HandledKind {
    /// What it reads; a text that is no version reads nothing.
    fn lines(&self) -> Vec<Line> {
        lines(&self.reads)
    }

    /// What it saves as a checkpoint, where it saves one.
    fn saves(&self) -> Option<Stamp> {
        let newest = *lines(&self.checkpoint_reads).last()?;
        let version = Version::new(newest.major, newest.minor, 0);
        let min_reader = MinReader::parse(&self.checkpoint_readable_by);
        Stamp::new(version, min_reader.unwrap_or(version.own_reader())).ok()
    }
}

impl ScheduledKind {
    /// What a schedule says; nothing of one whose job can't be stored, which no registry takes.
    fn of(schedule: &Schedule) -> Option<Self> {
        let job = schedule.job().ok()?;
        let (name, when) = (schedule.name().to_owned(), schedule.when().to_owned());
        Some(Self { name, when, enqueues: ProducedKind::of_job(job) })
    }

    /// What a schedule that is in a store says.
    ///
    /// # Errors
    /// What is wrong with its text.
    #[cfg(feature = "cli")]
    pub(crate) fn read(name: &jobs_core::ScheduleName, text: &str) -> Result<Self, String> {
        let (when, job) = crate::schedule::read(text)?;
        Ok(Self { name: name.to_string(), when, enqueues: ProducedKind::of_job(&job) })
    }
}

impl ProducedKind {
    /// What enqueues such a job; its shape is unknown.
    fn of_job(job: &NewJob) -> Self {
        Self {
            kind: job.kind.to_string(),
            version: job.version.to_string(),
            readable_by: job.min_reader.to_string(),
            queue: job.queue.to_string(),
            fingerprint: String::new(),
        }
    }

    /// What a build enqueues of a job.
    pub(crate) fn of<J: Job>() -> Self {
        let (version, reader) = (J::VERSION, J::MIN_READER);
        Self {
            kind: J::KIND.to_owned(),
            version: version.to_string(),
            readable_by: reader.to_string(),
            queue: J::POLICY.queue.to_owned(),
            fingerprint: fingerprint::<J>(),
        }
    }

    fn reader(&self) -> Option<&str> {
        Some(self.readable_by.as_str()).filter(|text| !text.is_empty())
    }

    fn stamp(&self) -> Option<Stamp> {
        Stamp::parse(&self.version, self.reader()).ok()
    }

    fn version(&self) -> Option<Version> {
        Version::parse(&self.version).ok()
    }
}

/// What the workers that have not ended say, each thing once. What is no manifest, such as that of a
/// build from before it had this form, says nothing.
pub(crate) fn live(workers: &[WorkerRecord]) -> Vec<Manifest> {
    let open = workers.iter().filter(|worker| worker.ended_at.is_none());
    let mut texts: Vec<&str> = open.map(|worker| worker.manifest.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts.into_iter().filter_map(|text| Manifest::parse(text).ok()).collect()
}

fn fingerprint<V: Versioned>() -> String {
    if V::FINGERPRINT == 0 { String::new() } else { format!("{:016x}", V::FINGERPRINT) }
}

/// The lines that such texts say. Where a line ends is what counts.
fn lines(texts: &[String]) -> Vec<Line> {
    let line = |text: &String| {
        let end = text.rsplit(' ').next()?;
        Version::parse(end).ok().map(|it| Line { major: it.major, minor: it.minor })
    };
    texts.iter().filter_map(line).collect()
}

fn handled<S>(handled: &Handled<S>) -> HandledKind {
    let texts = |lines: &[Line]| lines.iter().map(ToString::to_string).collect();
    let timeout = handled.policy.timeout;
    HandledKind {
        newest: handled.newest.clone(),
        aliases: handled.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        reads: texts(&handled.lines),
        checkpoint_reads: texts(&handled.checkpoint_lines),
        checkpoint_readable_by: handled
            .checkpoint_reader
            .map_or(String::new(), |it| it.to_string()),
        restarts: handled.policy.on_old_checkpoint == OldCheckpoint::Restart,
        priority: handled.policy.priority,
        max_failures: handled.policy.max_failures,
        timeout_ms: timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests;
