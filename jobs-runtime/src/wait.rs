//! Waiting for the end of a job.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jobs_core::{JobId, JobRecord};
use tokio::sync::Notify;

use crate::client::Jobs;
use crate::error::{Error, ErrorKind};

/// The first pause between two looks at a job when nothing wakes the one who waits; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A wait for a job's end; await it.
///
/// A worker of this client wakes it at once. Of others it hears by the store's wake-ups, and looks at
/// the job at first after milliseconds and then at least twice a second.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) when there is no such job (any more);
/// [`TimedOut`](ErrorKind::TimedOut) when the time that was set is over; a
/// [`Store`](ErrorKind::Store) error.
///
/// # Cancel safety
/// May be dropped at any time, which changes nothing for the job.
#[must_use = "nothing is waited for until this is awaited"]
pub struct Wait<'a> {
    jobs: &'a Jobs,
    id: JobId,
    timeout: Option<Duration>,
}

/// The ends of runs in this process, for those who wait for them.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    waiting: AtomicUsize,
    ended: Notify,
}

impl Ends {
    /// Wakes those who wait: some runs were settled.
    pub(crate) fn ring(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ended.notify_waiters();
        }
    }
}

/// Counts one who waits.
struct Waiting<'a>(&'a Ends);

impl<'a> Waiting<'a> {
    fn new(ends: &'a Ends) -> Self {
        ends.waiting.fetch_add(1, Ordering::SeqCst);
        Self(ends)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<'a> Wait<'a> {
    pub(crate) fn new(jobs: &'a Jobs, id: JobId) -> Self {
        Self { jobs, id, timeout: None }
    }

    /// Waits at most this long. Default: for as long as it takes.
    pub fn timeout(mut self, longest: Duration) -> Self {
        self.timeout = Some(longest);
        self
    }

    async fn ended(self) -> Result<JobRecord, Error> {
        let Some(longest) = self.timeout else {
            return self.look().await;
        };
        let timed_out = |_| {
            let what = format!("job {} has not ended within {longest:?}", self.id);
            Error::new(ErrorKind::TimedOut, what)
        };
        tokio::time::timeout(longest, self.look()).await.map_err(timed_out)?
    }

    async fn look(&self) -> Result<JobRecord, Error> {
        let ends = self.jobs.ends();
        let _waiting = Waiting::new(ends);
        let mut wake = self.jobs.store().wake();
        let mut pause = FIRST_PAUSE;
        loop {
            // From here on no end is missed.
            let mut ended = pin!(ends.ended.notified());
            ended.as_mut().enable();
            let job = self.jobs.job(self.id).await?.ok_or_else(|| {
                let what = format!("there is no job {} (any more)", self.id);
                Error::new(ErrorKind::NotFound, what)
            })?;
            if job.state.is_finished() {
                return Ok(job);
            }
            // A store's wake-up tells of all jobs, and may come all the time.
            let elsewhere = async {
                tokio::time::sleep(pause / 4).await;
                wake.changed().await;
            };
            tokio::select! {
                () = ended => {}
                () = elsewhere => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl<'a> IntoFuture for Wait<'a> {
    type Output = Result<JobRecord, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ended())
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, timeout, .. } = self;
        f.debug_struct("Wait").field("job", id).field("timeout", timeout).finish_non_exhaustive()
    }
}
