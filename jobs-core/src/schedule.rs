//! What is enqueued by the clock: declared here, read and kept by workers.

use std::fmt;

use crate::QueueName;
use crate::envelope::{EnvelopeError, MAX_PAYLOAD_BYTES, NewJob};
use crate::job::{Job, Payload};
use crate::record::Priority;

/// The most ticks that [`CatchUp::All`] makes up for.
pub const MAX_CATCH_UP: u32 = 1_000;

/// A job that is enqueued by the clock.
///
/// One run a tick, ever: whichever worker leads, and however many believe that they do.
///
/// `when` is a cron expression and an IANA time zone, `0 3 * * * Europe/Berlin`, or an interval,
/// `every 15m`. Five fields are minute, hour, day of the month, month and day of the week; six begin
/// with the second. Where both days are given, either will do. Without a zone it is UTC. Intervals
/// tick at their multiples since 1970-01-01T00:00:00Z, so `every 15m` is at :00, :15, :30 and :45.
///
/// When the clocks change, a fixed time of day ticks once: in a repeated hour at the first of the two,
/// in a skipped hour at its end. What has a `*` or a step in its hours or minutes goes by the clock: it
/// ticks in both of the repeated hours and not in the skipped one.
///
/// A new or changed expression first ticks at the next instant that it names after it is seen.
#[derive(Debug)]
pub struct Schedule {
    name: String,
    when: String,
    catch_up: CatchUp,
    job: Result<NewJob, EnvelopeError>,
}

/// What is done about ticks that nobody was there for.
///
/// A tick that comes at most a minute late counts as in time and is never left out.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    None,
    /// The latest of them is made up for, unless another tick is in time. The default: a nightly job
    /// that was missed runs once when the workers are back.
    #[default]
    Latest,
    /// The latest so many are made up for, 1 to [`MAX_CATCH_UP`], each with a job of its own.
    All(u32),
}

impl Schedule {
    /// A schedule of a job, named after its kind.
    pub fn new<J: Job>(when: impl Into<String>, job: &J) -> Self {
        Self {
            name: <J as Payload>::KIND.to_owned(),
            when: when.into(),
            catch_up: CatchUp::default(),
            job: NewJob::of(job, MAX_PAYLOAD_BYTES),
        }
    }

    /// A schedule of a job whose payload is text already, as tools have it that know no type for it.
    /// Its headers, due instant and conflict rule are left out: ticks have their own.
    pub fn of_job(name: impl Into<String>, when: impl Into<String>, job: NewJob) -> Self {
        let (name, when) = (name.into(), when.into());
        Self { name, when, catch_up: CatchUp::default(), job: Ok(job) }
    }

    /// Another name: a second schedule of the same kind needs one. 1 to 255 bytes without control
    /// characters. It is the schedule's identity: what is declared under one name is one schedule.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What is done about ticks that nobody was there for.
    #[must_use]
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.catch_up = catch_up;
        self
    }

    /// Another queue than the kind's own.
    #[must_use]
    pub fn queue(self, queue: QueueName) -> Self {
        self.changed(|job| job.queue = queue)
    }

    /// Another priority than the kind's own.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        self.changed(|job| job.priority = priority)
    }

    fn changed(mut self, change: impl FnOnce(&mut NewJob)) -> Self {
        if let Ok(job) = &mut self.job {
            change(job);
        }
        self
    }

    /// Its name, as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it ticks, as given.
    pub fn when(&self) -> &str {
        &self.when
    }

    /// What is done about missed ticks, as given.
    pub const fn catches_up(&self) -> CatchUp {
        self.catch_up
    }

    /// The job of each tick.
    ///
    /// # Errors
    /// Why its payload can't be stored.
    pub const fn job(&self) -> Result<&NewJob, &EnvelopeError> {
        self.job.as_ref()
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Latest => f.write_str("latest"),
            Self::All(most) => write!(f, "all up to {most}"),
        }
    }
}
