//! Is it safe to deploy? Pure: manifests and counts go in, findings come out.

mod checkpoint;
mod left;

use jobs_core::Line;
use jobs_core::store::Waiting;

use self::checkpoint::checkpoint;
use super::finding::{Answer, Code, Finding, Severity};
use super::{HandledKind, Manifest, ProducedKind, ScheduledKind};

/// What changes from one build to another, with nothing known of stored rows.
pub fn diff(old: &Manifest, new: &Manifest) -> Answer {
    let live = std::slice::from_ref(old);
    Comparison { live, producers: &[], candidate: new, waiting: None }.answer()
}

/// What deploying a candidate does beside live workers, beside the programs that enqueue without
/// handling, and to the jobs that wait. The schedules of a producer are those that people have declared
/// in the store.
pub fn check(
    candidate: &Manifest,
    live: &[Manifest],
    producers: &[Manifest],
    waiting: &[Waiting],
) -> Answer {
    Comparison { live, producers, candidate, waiting: Some(waiting) }.answer()
}

struct Comparison<'a> {
    live: &'a [Manifest],
    producers: &'a [Manifest],
    candidate: &'a Manifest,
    waiting: Option<&'a [Waiting]>,
}

impl Comparison<'_> {
    fn answer(&self) -> Answer {
        let mut findings = Vec::new();
        for (enqueued, is_handled) in self.candidate.enqueues() {
            findings.extend(self.ahead(enqueued, is_handled));
        }
        for old in self.live.iter().flat_map(|manifest| &manifest.handles) {
            match self.candidate.handled(&old.newest.kind) {
                Some(new) => {
                    findings.extend(self.lines(old, new));
                    findings.extend(unproven(old, new));
                    findings.extend(shape(old, new));
                    findings.extend(checkpoint(old, new));
                    findings.extend(self.queue(old, new));
                    findings.extend(policy(old, new));
                }
                None => findings.extend(self.gone(&old.newest.kind)),
            }
        }
        findings.extend(self.left_behind(&findings));
        for producer in self.producers {
            findings.extend(producer.produces.iter().filter_map(|enqueued| {
                self.still_enqueued(
                    enqueued,
                    "another program",
                    "First deploy that program without it",
                )
            }));
            findings.extend(producer.schedules.iter().filter_map(|it| self.still_ticks(it)));
        }
        for old in self.live.iter().flat_map(|manifest| &manifest.schedules) {
            findings.extend(self.schedule(old));
        }
        Answer::of(findings)
    }

    /// How many jobs of a kind wait that the candidate can't read; `None`: nobody has counted.
    fn unreadable(&self, kind: &str) -> Option<u64> {
        let of_kind = self.waiting?.iter().filter(|it| it.kind == kind);
        let is_unreadable =
            |it: &&Waiting| !self.candidate.takes(&it.kind, &it.version, it.min_reader.as_deref());
        Some(of_kind.filter(is_unreadable).map(|it| it.jobs).sum())
    }

    fn waiting(&self, kind: &str) -> Option<u64> {
        Some(self.waiting?.iter().filter(|it| it.kind == kind).map(|it| it.jobs).sum())
    }

    /// What the candidate enqueues and no live build can read.
    fn ahead(&self, enqueued: &ProducedKind, is_handled: bool) -> Option<Finding> {
        let ProducedKind { kind, version, .. } = enqueued;
        let reader = enqueued.reader();
        if self.live.is_empty() || self.live.iter().any(|it| it.takes(kind, version, reader)) {
            return None;
        }
        let is_known = self.live.iter().any(|live| live.handled(kind).is_some());
        let code = if is_known { Code::VersionAhead } else { Code::KindAddedAndProduced };
        // Without a worker of its own nobody would ever run it.
        let (severity, instead) = if is_handled {
            let instead = "Live workers give it back unread until the new workers are up: deploy \
                           those before what enqueues it";
            (Severity::Info, instead)
        } else {
            (Severity::Error, "First deploy a worker that handles it")
        };
        let what = if is_known {
            format!("it is enqueued as {version}, which no live build reads")
        } else {
            "it is enqueued, and no live build handles it".to_owned()
        };
        Some(finding(code, severity, kind, what, instead))
    }

    /// A kind that the candidate does not handle any more.
    fn gone(&self, kind: &str) -> Option<Finding> {
        if self.candidate.retired.iter().any(|retired| retired == kind) {
            return self.retired(kind);
        }
        let (severity, what) = match self.unreadable(kind) {
            None => (Severity::Error, "nobody would run what is left of it".to_owned()),
            Some(0) => (Severity::Warning, "no job of it waits at the moment".to_owned()),
            Some(jobs) => {
                (Severity::Error, format!("{}, and nobody would run them", jobs_wait(jobs)))
            }
        };
        let instead = "Keep the handler until nothing enqueues it and its last job has ended; or \
                       declare it `retired`, which ends what is left";
        Some(finding(Code::KindRemoved, severity, kind, what, instead))
    }

    /// What someone else still enqueues and the candidate could not read.
    fn still_enqueued(&self, enqueued: &ProducedKind, who: &str, instead: &str) -> Option<Finding> {
        let ProducedKind { kind, version, .. } = enqueued;
        let is_retired = self.candidate.retired.iter().any(|retired| retired == kind);
        if !is_retired && self.candidate.takes(kind, version, enqueued.reader()) {
            return None;
        }
        let code = if is_retired {
            Code::RetiredWithRows
        } else if self.candidate.handled(kind).is_some() {
            Code::VersionRegressed
        } else {
            Code::KindRemoved
        };
        let what = format!("{who} still enqueues it, as {version}");
        Some(finding(code, Severity::Error, kind, what, instead))
    }

    /// What a schedule still enqueues that a person has declared in the store.
    fn still_ticks(&self, schedule: &ScheduledKind) -> Option<Finding> {
        let who = format!("the schedule `{}`, which a person has declared,", schedule.name);
        let instead = "First take it back, with `Jobs::undeclare`, or declare it anew with what this \
                       build reads";
        self.still_enqueued(&schedule.enqueues, &who, instead)
    }

    /// A schedule of a live build.
    fn schedule(&self, old: &ScheduledKind) -> Option<Finding> {
        let ScheduledKind { name, when, .. } = old;
        let is_it = |it: &&ScheduledKind| it.name == *name;
        if let Some(new) = self.candidate.schedules.iter().find(is_it) {
            if new.when == *when {
                return None;
            }
            let what = format!("it ticks at `{}` instead of `{when}`", new.when);
            let instead = "It does from when the first worker of this build is up, and again as \
                           before once none is";
            return Some(finding(Code::ScheduleChanged, Severity::Info, name, what, instead));
        }
        // One that a person has declared under the name goes on.
        if self.producers.iter().flat_map(|it| &it.schedules).any(|it| is_it(&it)) {
            return None;
        }
        let what = format!("it ticks no more once the last worker is gone that declares `{when}`");
        let instead = "Declare it here too, or in the store, with `Jobs::declare`, if it is still \
                       wanted";
        Some(finding(Code::ScheduleDropped, Severity::Warning, name, what, instead))
    }

    fn retired(&self, kind: &str) -> Option<Finding> {
        let (severity, what) = match self.waiting(kind) {
            Some(0) => return None,
            None => (Severity::Warning, "jobs of it that wait become dead letters".to_owned()),
            Some(jobs) => {
                (Severity::Error, format!("{} and would become dead letters", jobs_wait(jobs)))
            }
        };
        let instead = "Let them end first, or cancel them, so that nothing is lost by surprise";
        Some(finding(Code::RetiredWithRows, severity, kind, what, instead))
    }

    /// The majors and minors that are read.
    fn lines(&self, old: &HandledKind, new: &HandledKind) -> Vec<Finding> {
        let kind = &old.newest.kind;
        let (old_lines, new_lines) = (old.lines(), new.lines());
        let (Some(old_newest), Some(new_newest)) = (old_lines.last(), new_lines.last()) else {
            return Vec::new();
        };
        let mut findings = Vec::new();
        for line in &old_lines {
            let covers = |it: &&Line| it.major == line.major && it.minor >= line.minor;
            if new_lines.iter().any(|it| covers(&it)) {
                continue;
            }
            let is_newest = line == old_newest;
            let is_known_major = new_lines.iter().any(|it| it.major == line.major);
            let code = if is_known_major || line.major > new_newest.major {
                Code::VersionRegressed
            } else if is_newest {
                Code::MajorWithoutPrevious
            } else {
                Code::VersionDropped
            };
            findings.push(self.unread(code, kind, *line));
        }
        findings
    }

    fn unread(&self, code: Code, kind: &str, line: Line) -> Finding {
        let Line { major, minor } = line;
        let jobs = self.unreadable(kind);
        let severity = match (code, jobs) {
            // A rollback is safe where nothing new was stored.
            (Code::VersionRegressed, None | Some(0)) | (Code::VersionDropped, Some(0)) => {
                Severity::Warning
            }
            _ => Severity::Error,
        };
        let count = match jobs {
            Some(1) => "1 job waits that this build can't read".to_owned(),
            Some(jobs @ 2..) => format!("{jobs} jobs wait that this build can't read"),
            Some(0) => "no job waits that this build can't read".to_owned(),
            None => "jobs of it would wait".to_owned(),
        };
        let what = format!("a live build reads {major}.{minor}, this one does not; {count}");
        let instead = match code {
            Code::VersionRegressed => {
                "They wait for a build that reads them, and nothing is lost: roll what enqueues back \
                 first, and keep a newer worker until they have run"
            }
            Code::MajorWithoutPrevious => {
                "Keep the shape of the older major as a `PastJob` and name it as `previous`"
            }
            _ => "Keep its shape in the chain of `previous` until no job of it is left",
        };
        finding(code, severity, kind, what, instead)
    }

    /// Jobs in the queue that the kind had.
    fn queue(&self, old: &HandledKind, new: &HandledKind) -> Option<Finding> {
        let (from, to) = (&old.newest.queue, &new.newest.queue);
        if from == to {
            return None;
        }
        let is_worked = self.candidate.handles.iter().any(|it| it.newest.queue == *from);
        let severity = if is_worked { Severity::Info } else { Severity::Warning };
        let what = format!("its jobs go to the queue {to} instead of {from}");
        let instead = if is_worked {
            "What is left in the old queue is worked for other kinds".to_owned()
        } else {
            format!("Let a worker work `{from}` too, with `.queue(\"{from}\")`, until it is empty")
        };
        Some(finding(Code::QueueChanged, severity, &old.newest.kind, what, instead))
    }
}

fn jobs_wait(jobs: u64) -> String {
    if jobs == 1 { "1 job of it waits".to_owned() } else { format!("{jobs} jobs of it wait") }
}

/// Older builds would run a newer minor.
fn unproven(old: &HandledKind, new: &HandledKind) -> Option<Finding> {
    let stamp = new.newest.stamp()?;
    let line = old.lines().into_iter().find(|line| line.major == stamp.version().major)?;
    let is_newer = stamp.version().minor > line.minor;
    let is_vouched_for = stamp.min_reader().minor <= line.minor;
    let is_same_shape =
        !new.newest.fingerprint.is_empty() && new.newest.fingerprint == old.newest.fingerprint;
    if !is_newer || !is_vouched_for || is_same_shape {
        return None;
    }
    let what = format!(
        "live builds of {}.{} run {} because its `readable_by` says so",
        line.major, line.minor, new.newest.version
    );
    let instead =
        "A manifest can't prove that: let the tests `jobs_lock_…` of the drift check pass";
    Some(finding(Code::ReadableByUnproven, Severity::Warning, &old.newest.kind, what, instead))
}

/// One version, two shapes.
fn shape(old: &HandledKind, new: &HandledKind) -> Option<Finding> {
    let (old_version, new_version) = (old.newest.version()?, new.newest.version()?);
    let (before, after) = (&old.newest.fingerprint, &new.newest.fingerprint);
    let is_same = before == after || before.is_empty() || after.is_empty();
    if is_same || old_version.own_reader() != new_version.own_reader() {
        return None;
    }
    // Another patch says that only the spelling of its types has changed.
    let severity = if old_version == new_version { Severity::Error } else { Severity::Warning };
    let what = format!("its shape is another one, under the same version {new_version}");
    let instead = "Raise the version as the drift check says; if only the spelling of a type \
                   changed, raise the patch";
    Some(finding(Code::ShapeChangedSameVersion, severity, &old.newest.kind, what, instead))
}

fn policy(old: &HandledKind, new: &HandledKind) -> Option<Finding> {
    let mut changes = Vec::new();
    let mut changed = |name: &str, from: &dyn std::fmt::Display, to: &dyn std::fmt::Display| {
        if from.to_string() != to.to_string() {
            changes.push(format!("{name} {to} instead of {from}"));
        }
    };
    let timeout = |ms: Option<u64>| ms.map_or("none".to_owned(), |ms| format!("{ms} ms"));
    changed("priority", &old.priority, &new.priority);
    changed("max_failures", &old.max_failures, &new.max_failures);
    changed("timeout", &timeout(old.timeout_ms), &timeout(new.timeout_ms));
    if changes.is_empty() {
        return None;
    }
    let what = format!("its policy changes: {}", changes.join(", "));
    let instead = "The budget and the priority of a job are those of the build that enqueued it, the \
                   time-out is the worker's";
    Some(finding(Code::PolicyChanged, Severity::Info, &old.newest.kind, what, instead))
}

fn finding(
    code: Code,
    severity: Severity,
    kind: &str,
    what: String,
    instead: impl Into<String>,
) -> Finding {
    Finding { code, severity, kind: kind.to_owned(), what, instead: instead.into() }
}
