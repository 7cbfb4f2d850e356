//! The client: enqueues, and looks at single jobs.

mod builder;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Enqueued, Inspect, Operate, Reschedule, Retention, Store};
use jobs_core::{BuildId, Clock, JobId, JobRecord, NewJob, Random, StoreId};

pub use self::builder::JobsBuilder;
use self::builder::Settings;
use crate::enqueue::{Answer, Enqueue, Enqueueable, check_expiry, check_wait, store_jobs};
use crate::error::{Error, ErrorKind};
use crate::producer::Producer;
use crate::store::{Backend, StoreDatabase};
use crate::trace::TraceContext;
use crate::wait::{Ends, Wait};

/// A handle on a job store. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Jobs {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    settings: Settings,
    producer: Producer,
    ends: Ends,
}

impl Jobs {
    /// Opens the store at an address with the default settings: `sqlite://app.db` (the file is made
    /// when absent), `postgres://user@host/database`, or `memory:` for tests.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error that says what to do: an address that no store serves, a
    /// file or server that can't be used, a schema of another version.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::builder().open(url).await
    }

    /// Settings that differ from the defaults.
    pub fn builder() -> JobsBuilder {
        JobsBuilder::new()
    }

    /// Begins to enqueue a job. Nothing happens until it is awaited.
    pub fn enqueue<J: Enqueueable>(&self, job: J) -> Enqueue<'_, J::One> {
        Enqueue::new(self, [job])
    }

    /// Begins to enqueue any number of jobs of one type. All are stored or none; the answers are in
    /// their order.
    pub fn enqueue_all<J: Enqueueable>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Enqueue<'_, J::Many> {
        Enqueue::new(self, jobs)
    }

    /// Enqueues a job whose payload is text already, as tools do that know no type for it.
    ///
    /// # Errors
    /// As [`Enqueue`]; [`Configuration`](crate::ErrorKind::Configuration) where it would wait for longer
    /// than [`MAX_WAIT`](crate::MAX_WAIT), or is past its `expires_in` already.
    ///
    /// # Cancel safety
    /// A dropped call has enqueued the job or not.
    pub async fn enqueue_new(&self, job: NewJob) -> Result<Enqueued, Error> {
        job.check_text(self.max_payload_bytes())?;
        let now = self.clock().now();
        let checked =
            check_wait(job.due, now).and_then(|due| check_expiry(&job, now).map(|()| due));
        let due = checked.map_err(|why| Error::new(ErrorKind::Configuration, why))?;
        let job = NewJob { build: Some(self.build().clone()), due, ..job };
        Ok(Enqueued::of(store_jobs(self, &[job]).await?))
    }

    /// Changes when waiting jobs are due and how urgent they are; answers which ones it found waiting.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error; [`Configuration`](crate::ErrorKind::Configuration) where
    /// they would wait for longer than [`MAX_WAIT`](crate::MAX_WAIT).
    ///
    /// # Cancel safety
    /// A dropped call has changed all of them or none.
    pub async fn reschedule(&self, jobs: &[JobId], change: Reschedule) -> Result<Vec<bool>, Error> {
        if let Some(due) = change.due {
            let checked = check_wait(due, self.clock().now());
            checked.map_err(|why| Error::new(ErrorKind::Configuration, why))?;
        }
        Ok(self.operate().reschedule(jobs, change).await?)
    }

    /// Deletes finished jobs that ended longer ago than their retention, oldest first, at most
    /// `limit`; answers how many. Workers do it by themselves; this is for tools.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error.
    ///
    /// # Cancel safety
    /// A dropped call has deleted as many as it would have, or none.
    pub async fn prune(&self, retention: Retention, limit: u32) -> Result<u32, Error> {
        Ok(self.store().prune(retention, limit).await?)
    }

    /// What outside the store has slowed it down for longer than `lasting`, in words for an operator;
    /// workers log it too.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error.
    pub async fn warnings(&self, lasting: Duration) -> Result<Vec<String>, Error> {
        Ok(self.store().warnings(lasting).await?)
    }

    /// Opens a transaction on the database that the jobs are in, for rows of the application that
    /// commit together with jobs: `jobs.begin::<sqlx::Sqlite>()`.
    ///
    /// On SQLite it is `BEGIN IMMEDIATE` and everyone else's writes wait for its end, so keep it
    /// short; a call of this client that is not passed the transaction waits for it too, and fails
    /// when it would wait for ever. Dropping it rolls it back.
    ///
    /// # Errors
    /// [`WrongTransaction`](crate::ErrorKind::WrongTransaction) when the jobs are in another database; a
    /// [`Store`](crate::ErrorKind::Store) error.
    ///
    /// # Cancel safety
    /// A dropped call leaves no transaction open.
    pub async fn begin<DB: StoreDatabase>(&self) -> Result<sqlx::Transaction<'static, DB>, Error> {
        DB::begin(self).await
    }

    /// Reads a job and where it is in its life; `None` when there is none with this id.
    ///
    /// # Errors
    /// A [`Store`](crate::ErrorKind::Store) error.
    pub async fn job(&self, id: JobId) -> Result<Option<JobRecord>, Error> {
        Ok(self.inspect().job(id).await?)
    }

    /// Waits until a job has succeeded, died or been cancelled, and reads it:
    /// `jobs.wait(id).timeout(Duration::from_secs(30)).await?.result_as::<Totals>()`.
    pub fn wait(&self, id: JobId) -> Wait<'_> {
        Wait::new(self, id)
    }

    /// The store's contract, for tools and tests.
    pub fn store(&self) -> &dyn Store {
        self.inner.backend.store()
    }

    /// The read side, for tools.
    pub fn inspect(&self) -> &dyn Inspect {
        self.inner.backend.inspect()
    }

    /// The operators' side, for tools.
    pub fn operate(&self) -> &dyn Operate {
        self.inner.backend.operate()
    }

    /// Which store this is.
    pub fn store_id(&self) -> &StoreId {
        self.store().id()
    }

    /// The label of this build.
    pub fn build(&self) -> &BuildId {
        &self.inner.settings.build
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    pub(crate) fn producer(&self) -> &Producer {
        &self.inner.producer
    }

    pub(crate) fn ends(&self) -> &Ends {
        &self.inner.ends
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.settings.clock
    }

    /// The trace that a job which is enqueued now belongs to.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let of_application = || self.inner.settings.trace.as_ref().and_then(|trace| (trace.0)());
        crate::trace::current().or_else(of_application)
    }

    pub(crate) fn max_payload_bytes(&self) -> usize {
        self.inner.settings.max_payload_bytes
    }

    pub(crate) fn random(&self) -> &Arc<dyn Random> {
        &self.inner.settings.random
    }

    /// This client, once it has said what it produces.
    async fn published(self) -> Self {
        self.producer().publish(&self).await;
        self
    }

    fn new(backend: Backend, settings: Settings) -> Self {
        let producer = Producer::new(settings.producer.clone());
        Self { inner: Arc::new(Inner { backend, settings, producer, ends: Ends::default() }) }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("store", &self.store().id().0).finish_non_exhaustive()
    }
}
