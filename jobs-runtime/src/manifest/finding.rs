//! What a comparison of manifests finds.

use std::fmt;

use serde::Serialize;

/// What a deploy would do to the jobs of other builds, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The kind that it is about, or the name of the schedule.
    pub kind: String,
    /// What would happen.
    pub what: String,
    /// What to do instead.
    pub instead: String,
}

/// What can be found. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The candidate no longer handles a kind.
    KindRemoved,
    /// The candidate enqueues a kind that no live build handles.
    KindAddedAndProduced,
    /// The candidate no longer reads an older major.
    VersionDropped,
    /// The candidate enqueues a version that no live build reads.
    VersionAhead,
    /// The candidate is older than a live build: a rollback.
    VersionRegressed,
    /// The candidate has a new major and no upcast from the one before.
    MajorWithoutPrevious,
    /// Live builds will run a newer minor because its author vouches for them.
    ReadableByUnproven,
    /// One version, two shapes.
    ShapeChangedSameVersion,
    /// Another version of the checkpoint.
    CheckpointBumped,
    /// Another queue.
    QueueChanged,
    /// Another time-out, budget or priority.
    PolicyChanged,
    /// The candidate has retired a kind of which jobs wait.
    RetiredWithRows,
    /// Jobs wait as versions that the candidate can't read, although it handles their kind.
    Stranded,
    /// The candidate no longer declares a schedule.
    ScheduleDropped,
    /// The candidate declares a schedule with other times.
    ScheduleChanged,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Safe if it is meant so.
    Warning,
    /// Jobs would end or wait for ever.
    Error,
}

/// In which order programs of the candidate are deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// It does not matter.
    Any,
    /// First every worker, then what enqueues.
    WorkersFirst,
    /// First what enqueues, then every worker.
    ProducersFirst,
    /// What is new and what is gone do not fit one deploy.
    TwoDeploys,
}

/// Whether a deploy is safe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Whether there is no error.
    pub is_safe: bool,
    /// In which order.
    pub order: Order,
    /// The worst first.
    pub findings: Vec<Finding>,
}

impl Code {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KindRemoved => "kind_removed",
            Self::KindAddedAndProduced => "kind_added_and_produced",
            Self::VersionDropped => "version_dropped",
            Self::VersionAhead => "version_ahead",
            Self::VersionRegressed => "version_regressed",
            Self::MajorWithoutPrevious => "major_without_previous",
            Self::ReadableByUnproven => "readable_by_unproven",
            Self::ShapeChangedSameVersion => "shape_changed_same_version",
            Self::CheckpointBumped => "checkpoint_bumped",
            Self::QueueChanged => "queue_changed",
            Self::PolicyChanged => "policy_changed",
            Self::RetiredWithRows => "retired_with_rows",
            Self::Stranded => "stranded",
            Self::ScheduleDropped => "schedule_dropped",
            Self::ScheduleChanged => "schedule_changed",
        }
    }

    /// Whether it is about something new, which workers must have before anybody enqueues it.
    const fn is_new(self) -> bool {
        matches!(self, Self::KindAddedAndProduced | Self::VersionAhead)
    }

    /// Whether it is about something gone, which nobody may enqueue any more before workers lose it.
    pub(super) const fn is_gone(self) -> bool {
        matches!(
            self,
            Self::KindRemoved
                | Self::VersionDropped
                | Self::VersionRegressed
                | Self::MajorWithoutPrevious
                | Self::RetiredWithRows
        )
    }
}

impl Severity {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Order {
    /// The order in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "deploy workers and producers in any order",
            Self::WorkersFirst => {
                "deploy every worker first, then what enqueues; roll back the other way round"
            }
            Self::ProducersFirst => {
                "deploy what enqueues first, then the workers; roll back the other way round"
            }
            Self::TwoDeploys => {
                "make two deploys of it: one that only adds (workers first), and one that only takes \
                 away (producers first)"
            }
        }
    }
}

impl Answer {
    /// Sorts findings, and says what follows from them.
    pub(super) fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by(|a, b| {
            b.severity.cmp(&a.severity).then(a.code.cmp(&b.code)).then(a.kind.cmp(&b.kind))
        });
        // Several live builds may say the same; the worst stands for all.
        let mut seen = std::collections::HashSet::new();
        findings.retain(|finding| seen.insert((finding.code, finding.kind.clone())));
        let has = |is: fn(Code) -> bool| findings.iter().any(|finding| is(finding.code));
        let order = match (has(Code::is_new), has(Code::is_gone)) {
            (false, false) => Order::Any,
            (true, false) => Order::WorkersFirst,
            (false, true) => Order::ProducersFirst,
            (true, true) => Order::TwoDeploys,
        };
        let is_safe = findings.iter().all(|finding| finding.severity != Severity::Error);
        Self { is_safe, order, findings }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, kind, what, instead } = self;
        write!(f, "{} {} {kind}: {what}. {instead}", severity.as_str(), code.as_str())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let safe = if self.is_safe { "safe to deploy" } else { "not safe to deploy as it is" };
        writeln!(f, "{safe}: {}", self.order.as_str())
    }
}
