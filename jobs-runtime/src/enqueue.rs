//! What is said of jobs on their way into the store.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use jobs_core::store::Enqueued;
use jobs_core::{
    Due, Headers, Job, MAX_UNIQUE_KEY_BYTES, MAX_WAIT, NewJob, OnConflict, Priority, QueueName,
    StoreError, StoreErrorKind, Timestamp, UniqueKey, UniqueWhile, encode_headers,
};

use crate::client::Jobs;
use crate::error::{Error, ErrorKind};
use crate::store::UserTransaction;
use crate::trace::TRACEPARENT;

/// A job or jobs about to be enqueued: set what differs from the kind's own policy, then await it.
///
/// `A` is the answer: [`Enqueued`] for one job, a list of them for many.
///
/// # Errors
/// [`Payload`](ErrorKind::Payload) when a job can't be encoded or is too large, naming the field;
/// [`Configuration`](ErrorKind::Configuration) for a malformed setting;
/// [`Store`](ErrorKind::Store) when the store did not do it. Nothing was stored, except that an
/// unavailable store may have done it although no answer came: enqueue with a
/// [`unique_key`](Enqueue::unique_key) to repeat safely.
///
/// # Cancel safety
/// A future that is dropped half-way has enqueued everything or nothing.
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Enqueue<'a, A = Enqueued> {
    jobs: &'a Jobs,
    new: Result<Vec<NewJob>, Error>,
    headers: Headers,
    _answer: PhantomData<fn() -> A>,
}

/// As [`Enqueue`], inside a transaction of the application: the jobs exist only if it commits.
///
/// # Errors
/// As [`Enqueue`]; [`WrongTransaction`](ErrorKind::WrongTransaction) or a
/// [`Store`](ErrorKind::Store) error when the transaction is not one of this store.
#[must_use = "nothing is enqueued until this is awaited"]
pub struct EnqueueIn<'a, 't, A = Enqueued> {
    enqueue: Enqueue<'a, A>,
    tx: &'t mut dyn UserTransaction,
}

/// What an enqueue answers: for one job or for many.
pub trait Answer: Sized + Send + sealed::Sealed {
    #[doc(hidden)]
    fn of(answers: Vec<Enqueued>) -> Self;
}

/// A job as what is enqueued: every [`Job`].
///
/// The answers are named through this trait because rustc says of a type in a signature what is
/// missing, and of a bound alone also where it stands and what else there is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "`{Self}` can't be enqueued",
    note = "add `#[derive(Job)]` and `#[job(kind = \"…\", version = \"1.0.0\")]` to `{Self}`",
    note = "a job is passed by value: write `job`, or `job.clone()`, instead of `&job`"
)]
pub trait Enqueueable: Job {
    /// What the enqueue of one answers.
    type One: Answer;
    /// What the enqueue of many answers.
    type Many: Answer;
}

#[diagnostic::do_not_recommend]
impl<J: Job> Enqueueable for J {
    type One = Enqueued;
    type Many = Vec<Enqueued>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Enqueued {}
    impl Sealed for Vec<super::Enqueued> {}
}

impl Answer for Enqueued {
    fn of(answers: Vec<Enqueued>) -> Self {
        // `answered` has counted them.
        *answers.last().expect("one job has one answer")
    }
}

impl Answer for Vec<Enqueued> {
    fn of(answers: Vec<Enqueued>) -> Self {
        answers
    }
}

impl Enqueue<'_> {
    /// At most one job of this kind with this key waits at a time; while one does, this is
    /// [`Enqueued::AlreadyThere`].
    pub fn unique_key(self, key: impl AsRef<str>) -> Self {
        match UniqueKey::new(key) {
            Ok(key) => self.each(|job| job.unique_key = Some(key.clone())),
            Err(error) => self.refused(&error.to_string()),
        }
    }
}

impl<'a, A: Answer> Enqueue<'a, A> {
    pub(crate) fn new<J: Job>(jobs: &'a Jobs, given: impl IntoIterator<Item = J>) -> Self {
        let encode = |job| NewJob::of(&job, jobs.max_payload_bytes());
        let new = given.into_iter().map(encode).collect::<Result<Vec<_>, _>>();
        Self { jobs, new: new.map_err(Error::from), headers: Headers::new(), _answer: PhantomData }
    }

    /// What becomes of it when a waiting job binds its unique key. Default: that one stays as it is.
    pub fn on_conflict(self, on_conflict: OnConflict) -> Self {
        self.each(|job| job.on_conflict = on_conflict)
    }

    /// Binds its unique key for longer than it waits; see [`UniqueWhile`] for what that costs.
    pub fn unique_while(self, unique_while: UniqueWhile) -> Self {
        self.each(|job| job.unique_while = unique_while)
    }

    /// At most one job with this key in each period, whatever became of the first: periods begin at
    /// their multiples since 1970-01-01T00:00:00Z, by this process's clock, and at least 1 s each.
    ///
    /// It holds for as long as the first is kept: workers delete succeeded jobs after 24 h, so for a
    /// longer period set a longer [`retention`](crate::Worker::retention) in every worker of the store.
    pub fn unique_for(mut self, period: Duration) -> Self {
        let seconds = i64::try_from(period.as_secs()).unwrap_or(i64::MAX);
        if seconds < 1 {
            return self.refused(&format!("a period of {period:?} is shorter than a second"));
        }
        let now = self.jobs.clock().now().as_micros().div_euclid(1_000_000);
        let bucket = now.div_euclid(seconds);
        let in_period = |job: &mut NewJob| {
            let key = job.unique_key.as_ref().ok_or("a period needs a unique key".to_owned())?;
            let with_period = UniqueKey::new(format!("{key}@{seconds}.{bucket}"));
            let with_period = with_period.map_err(|_| {
                format!(
                    "a unique key of {} bytes leaves no room for its period: {MAX_UNIQUE_KEY_BYTES} in all",
                    key.as_str().len()
                )
            })?;
            job.unique_key = Some(with_period);
            job.unique_while = UniqueWhile::Kept;
            Ok::<_, String>(())
        };
        let done = self.new.as_mut().map_or(Ok(()), |new| new.iter_mut().try_for_each(in_period));
        match done {
            Ok(()) => self,
            Err(why) => self.refused(&why),
        }
    }

    /// No run starts later than this long after it is due, a retry neither: then it is dead, with the
    /// class `expired`. The enqueue fails where that is over already: for zero, and for a
    /// [`due_at`](Self::due_at) that is longer ago by this process's clock.
    pub fn expires_in(self, wait: Duration) -> Self {
        self.each(|job| job.expires_in = Some(wait))
    }

    /// Not before this long from now, by the clock that the store judges due times by: a server's own,
    /// and over a SQLite file the host's, with whose steps due times move. At most [`MAX_WAIT`]; the
    /// enqueue fails beyond.
    pub fn delay(self, delay: Duration) -> Self {
        match check_wait(Due::In(delay), self.jobs.clock().now()) {
            Ok(due) => self.each(|job| job.due = due),
            Err(why) => self.refused(&why),
        }
    }

    /// Not before this instant, which is at most [`MAX_WAIT`] away by this process's clock; the enqueue
    /// fails beyond.
    pub fn due_at(self, instant: SystemTime) -> Self {
        match check_wait(Due::At(Timestamp::from(instant)), self.jobs.clock().now()) {
            Ok(due) => self.each(|job| job.due = due),
            Err(why) => self.refused(&why),
        }
    }

    /// From -100 to 100, higher first, instead of the kind's own. See [`Priority`] for how waiting
    /// jobs rise.
    pub fn priority(self, priority: i16) -> Self {
        let Some(priority) = Priority::new(priority) else {
            return self.refused(&format!("priority {priority} is not one of -100 to 100"));
        };
        self.each(|job| job.priority = priority)
    }

    /// Another queue than the kind's own.
    pub fn queue(self, name: impl AsRef<str>) -> Self {
        match QueueName::new(name) {
            Ok(name) => self.each(|job| job.queue = name.clone()),
            Err(error) => self.refused(&error.to_string()),
        }
    }

    /// Writes a header beside the payload, for middleware and tools.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Enqueues inside a transaction of the application: the jobs exist only if it commits.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the jobs may or may not be in the transaction: roll that back.
    pub fn in_tx<'t, T: UserTransaction>(self, tx: &'t mut T) -> EnqueueIn<'a, 't, A> {
        EnqueueIn { enqueue: self, tx }
    }

    fn finished(mut self) -> Result<Vec<NewJob>, Error> {
        if let Some(trace) = self.jobs.trace() {
            self.headers.entry(TRACEPARENT.to_owned()).or_insert_with(|| trace.to_string());
        }
        let headers = encode_headers(&self.headers)?;
        let (build, now) = (self.jobs.build(), self.jobs.clock().now());
        let mut new = self.new?;
        for job in &mut new {
            check_expiry(job, now).map_err(|why| Error::new(ErrorKind::Configuration, why))?;
            job.headers.clone_from(&headers);
            job.build = Some(build.clone());
        }
        Ok(new)
    }

    fn each(mut self, change: impl FnMut(&mut NewJob)) -> Self {
        if let Ok(new) = &mut self.new {
            new.iter_mut().for_each(change);
        }
        self
    }

    fn refused(mut self, why: &str) -> Self {
        if self.new.is_ok() {
            self.new = Err(Error::new(ErrorKind::Configuration, why));
        }
        self
    }
}

/// Keeps a job from being put off for longer than [`MAX_WAIT`].
pub(crate) fn check_wait(due: Due, now: Timestamp) -> Result<Due, String> {
    let days = MAX_WAIT.as_secs() / 86_400;
    match due {
        Due::In(wait) if wait > MAX_WAIT => {
            Err(format!("a wait of {wait:?} is longer than a job may wait: {days} days"))
        }
        Due::At(at) if at > now.after(MAX_WAIT) => {
            Err(format!("{at} is farther away than a job may wait: {days} days"))
        }
        Due::In(_) | Due::At(_) | Due::Unchanged => Ok(due),
    }
}

/// Keeps out a job that no run could start of in time: it would be a dead letter from the beginning.
pub(crate) fn check_expiry(job: &NewJob, now: Timestamp) -> Result<(), String> {
    match (job.expires_in, job.due) {
        (Some(Duration::ZERO), _) => Err(NO_TIME.to_owned()),
        (Some(wait), Due::At(at)) if at.after(wait) <= now => Err(format!(
            "it would be expired before it is stored: it is due at {at} and may start for {wait:?} from then, \
             which is over; let it be due later, or give it a longer `expires_in`"
        )),
        (Some(_), Due::At(_) | Due::In(_) | Due::Unchanged) | (None, _) => Ok(()),
    }
}

/// What is wrong with an `expires_in` of zero.
pub(crate) const NO_TIME: &str =
    "`expires_in` of zero leaves a job no time to start; give it a longer one, or none";

/// Stores jobs as every enqueue outside of a transaction does: behind the gate, and saying what is
/// produced.
pub(crate) async fn store_jobs(jobs: &Jobs, new: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
    jobs.producer().ask(jobs, new).await?;
    jobs.producer().publish(jobs).await;
    answered(new, jobs.store().enqueue(new).await?)
}

/// The answers, one a job.
fn answered(new: &[NewJob], answers: Vec<Enqueued>) -> Result<Vec<Enqueued>, Error> {
    if answers.len() == new.len() {
        return Ok(answers);
    }
    let what = format!("the store answered {} enqueues of {}", answers.len(), new.len());
    Err(StoreError::new(StoreErrorKind::Corrupt, what).into())
}

type AnswerFuture<'a, A> = Pin<Box<dyn Future<Output = Result<A, Error>> + Send + 'a>>;

impl<'a, A: Answer + 'a> IntoFuture for Enqueue<'a, A> {
    type Output = Result<A, Error>;
    type IntoFuture = AnswerFuture<'a, A>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let jobs = self.jobs;
            let new = self.finished()?;
            Ok(A::of(store_jobs(jobs, &new).await?))
        })
    }
}

impl<'a: 't, 't, A: Answer + 't> IntoFuture for EnqueueIn<'a, 't, A> {
    type Output = Result<A, Error>;
    type IntoFuture = AnswerFuture<'t, A>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { enqueue, tx } = self;
            let jobs = enqueue.jobs;
            let new = enqueue.finished()?;
            jobs.producer().ask(jobs, &new).await?;
            jobs.producer().publish_beside(jobs, tx).await;
            let answers = jobs.backend().enqueue_in(tx.connection(), &new).await?;
            Ok(A::of(answered(&new, answers)?))
        })
    }
}

impl<A> fmt::Debug for Enqueue<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("jobs", &self.new).finish_non_exhaustive()
    }
}

impl<A> fmt::Debug for EnqueueIn<'_, '_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.enqueue.fmt(f)
    }
}
