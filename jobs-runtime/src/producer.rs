//! What a client does besides enqueueing: it says what it produces, and may ask who reads that.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jobs_core::{NewJob, Stamp};

use crate::client::Jobs;
use crate::error::{Error, ErrorKind};
use crate::log;
#[cfg(feature = "cli")]
use crate::manifest::ScheduledKind;
use crate::manifest::{Manifest, ProducedKind, live};
use crate::store::UserTransaction;

/// What becomes of a job that no live worker reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// It is refused with [`ErrorKind::Unreadable`], and nothing is stored.
    Refuse,
    /// It is stored, and the log tells of it, once a minute at most.
    Warn,
}

/// How often a running program says again that it is there.
const PUBLISH_EVERY: Duration = Duration::from_hours(1);
/// How long an answer of the gate stands: a yes until the worker may be gone, a no until it may be
/// there.
const YES_STANDS: Duration = Duration::from_secs(30);
const NO_STANDS: Duration = Duration::from_secs(2);

/// The settings of a client as a producer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) produces: Vec<ProducedKind>,
    pub(crate) gate: Option<Gate>,
}

/// What a client remembers as a producer.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    wanted: Wanted,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    published_at: Option<Duration>,
    /// Whether a live worker reads a kind and version, and when that was asked.
    read: HashMap<(String, Stamp), (bool, Duration)>,
}

impl Jobs {
    /// What the schedules enqueue that people have declared in the store. One that this build can't read
    /// is left out: it does not tick here either.
    ///
    /// # Errors
    /// A [`Store`](ErrorKind::Store) error.
    #[cfg(feature = "cli")]
    pub(crate) async fn schedules_of_people(&self) -> Result<Manifest, Error> {
        let view = self.store().schedules().await?;
        let of_people = view.schedules.iter().filter_map(|record| {
            let declared = record.declared.iter().find(|declared| declared.by.is_none())?;
            ScheduledKind::read(&record.name, &declared.text).ok()
        });
        Ok(Manifest { schedules: of_people.collect(), ..Manifest::default() })
    }
}

impl Producer {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, memory: Mutex::default() }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what the program produces, unless it has said so lately. That it can't is logged: an
    /// enqueue does not fail for it.
    pub(crate) async fn publish(&self, jobs: &Jobs) {
        if let Some(manifest) = self.to_publish(jobs) {
            let published = jobs.store().publish(jobs.build(), &manifest).await;
            tell(jobs, published.map_err(Error::from));
        }
    }

    /// As [`publish`](Self::publish), while the application has a transaction open.
    pub(crate) async fn publish_beside(&self, jobs: &Jobs, tx: &mut dyn UserTransaction) {
        if let Some(manifest) = self.to_publish(jobs) {
            let backend = jobs.backend();
            tell(jobs, backend.publish_beside(tx.connection(), jobs.build(), &manifest).await);
        }
    }

    /// What is to be said now, if anything.
    fn to_publish(&self, jobs: &Jobs) -> Option<String> {
        let produces = &self.wanted.produces;
        let is_time = || self.is_time_to_publish(jobs.clock().elapsed());
        (!produces.is_empty() && is_time())
            .then(|| Manifest { produces: produces.clone(), ..Manifest::default() }.to_json())
    }

    fn is_time_to_publish(&self, now: Duration) -> bool {
        let mut memory = self.memory();
        let is_time = memory.published_at.is_none_or(|at| now.saturating_sub(at) >= PUBLISH_EVERY);
        if is_time {
            memory.published_at = Some(now);
        }
        is_time
    }

    /// Asks whether live workers read these jobs, where the client was told to.
    ///
    /// # Errors
    /// [`Unreadable`](ErrorKind::Unreadable) where one of them is refused.
    pub(crate) async fn ask(&self, jobs: &Jobs, new: &[NewJob]) -> Result<(), Error> {
        let Some(gate) = self.wanted.gate else { return Ok(()) };
        let mut asked: Option<(&str, Stamp)> = None;
        for job in new {
            // One call is mostly of one kind and version.
            let Some(stamp) = job.stamp() else { continue };
            if asked == Some((job.kind.as_str(), stamp)) {
                continue;
            }
            asked = Some((job.kind.as_str(), stamp));
            if self.is_read(jobs, job, stamp).await? {
                continue;
            }
            let (kind, version) = (&job.kind, job.version);
            let what = format!("no live worker reads `{kind}` {version}");
            match gate {
                Gate::Refuse => {
                    let what = format!("{what}: deploy a worker that does before what enqueues it");
                    return Err(Error::new(ErrorKind::Unreadable, what));
                }
                Gate::Warn => log::GATE.write(jobs.clock().elapsed(), || {
                    tracing::warn!("{what}; it waits for one that does");
                }),
            }
        }
        Ok(())
    }

    async fn is_read(&self, jobs: &Jobs, job: &NewJob, stamp: Stamp) -> Result<bool, Error> {
        let now = jobs.clock().elapsed();
        let key = (job.kind.to_string(), stamp);
        if let Some((is_read, at)) = self.memory().read.get(&key) {
            let stands = if *is_read { YES_STANDS } else { NO_STANDS };
            if now.saturating_sub(*at) < stands {
                return Ok(*is_read);
            }
        }
        let live = live(&jobs.inspect().workers().await?);
        let (version, reader) = (job.version.to_string(), job.min_reader.to_string());
        let reads =
            |manifest: &Manifest| manifest.takes(job.kind.as_str(), &version, Some(&reader));
        // Where no worker is there at all, none of another build is either.
        let is_read = live.is_empty() || live.iter().any(reads);
        self.memory().read.insert(key, (is_read, now));
        Ok(is_read)
    }
}

fn tell(jobs: &Jobs, published: Result<(), Error>) {
    if let Err(error) = published {
        log::PUBLISH.write(jobs.clock().elapsed(), || {
            let error = jobs_core::chain(&error);
            tracing::warn!(error, "can't publish what this build produces");
        });
    }
}
