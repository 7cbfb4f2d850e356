//! SIGTERM and SIGINT, which mean the same.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, ErrorKind};

/// The two signals that ask a process to stop.
#[derive(Debug)]
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Takes the signals over from their default, which ends the process.
    pub(crate) fn take() -> Result<Self, Error> {
        let take = |kind| {
            signal(kind).map_err(|error| {
                let what = format!("can't listen for signals: {error}");
                Error::new(ErrorKind::Broken, what)
            })
        };
        Ok(Self { term: take(SignalKind::terminate())?, int: take(SignalKind::interrupt())? })
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
