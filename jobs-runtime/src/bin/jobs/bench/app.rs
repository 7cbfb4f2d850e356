//! The application that is measured: a job that carries when it was sent, and a handler that does
//! nothing but note that it ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Clock, Handlers, SystemClock};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

use super::Result;

/// The job of every scenario.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Job)]
#[job(kind = "bench.stamp", version = "1.0.0", crate = "jobs_runtime")]
pub(crate) struct Stamp {
    /// When it was sent, on the clock since boot, which all processes share; 0: not told.
    pub(crate) sent_at_ns: u64,
}

pub(crate) const KIND: &str = "bench.stamp";
pub(crate) const ROUTE: &str = "bench.stamp@1.0";

impl Stamp {
    pub(crate) const UNTOLD: Self = Self { sent_at_ns: 0 };

    pub(crate) fn now() -> Self {
        Self { sent_at_ns: u64::try_from(elapsed().as_nanos()).unwrap_or(u64::MAX) }
    }

    /// How long ago it was sent, where that was told.
    pub(crate) fn age(self) -> Option<Duration> {
        let sent_at = Duration::from_nanos(self.sent_at_ns);
        (self.sent_at_ns > 0).then(|| elapsed().saturating_sub(sent_at))
    }
}

/// The time on the clock since boot.
pub(crate) fn elapsed() -> Duration {
    SystemClock.elapsed()
}

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    handled: AtomicU64,
    wanted: u64,
    done: Notify,
    ages: mpsc::UnboundedSender<Duration>,
    pause: Duration,
}

impl App {
    /// An application that is done once `wanted` jobs ran, each taking `pause`. Also answers the
    /// ages of the stamps.
    pub(crate) fn new(wanted: u64, pause: Duration) -> (Self, mpsc::UnboundedReceiver<Duration>) {
        let (ages, heard) = mpsc::unbounded_channel();
        let (handled, done) = (AtomicU64::new(0), Notify::new());
        (Self(Arc::new(Inner { handled, wanted, done, ages, pause })), heard)
    }

    pub(crate) fn handled(&self) -> u64 {
        self.0.handled.load(Ordering::Relaxed)
    }

    /// Waits until all that were wanted ran.
    pub(crate) async fn done(&self) {
        self.0.done.notified().await;
    }
}

async fn handle(stamp: Stamp, cx: JobContext<App>) -> std::result::Result<(), JobError> {
    let app = &cx.state.0;
    if let Some(age) = stamp.age() {
        // The listener of a run that is over is gone.
        let _ = app.ages.send(age);
    } else if !app.pause.is_zero() {
        tokio::time::sleep(app.pause).await;
    }
    if app.handled.fetch_add(1, Ordering::Relaxed) + 1 == app.wanted {
        app.done.notify_one();
    }
    Ok(())
}

pub(crate) fn handlers() -> Result<Handlers<App>> {
    Ok(Registry::<App>::new().handle(handle).build()?)
}
