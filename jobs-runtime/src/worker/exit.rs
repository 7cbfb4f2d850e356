//! The deadline outside every runtime: code that ignores everything can't hold the process.
//!
//! The one thread that outlives the worker, on purpose: after the drain a blocking closure may still
//! keep the application's runtime from shutting down, and the supervisor would have to kill.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::Clock;

/// How long the last line of the log may take.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// Ends the process with a status at a time on the clock, its last words included, unless it is gone
/// before.
pub(super) fn arm(clock: Arc<dyn Clock>, at: Duration, status: i32) {
    let at = at.saturating_sub(LAST_WORDS);
    let wait_and_exit = move || {
        loop {
            match at.saturating_sub(clock.elapsed()) {
                Duration::ZERO => break,
                left => std::thread::park_timeout(left),
            }
        }
        // On another thread: what holds the process may be holding the log.
        let tell = move || {
            tracing::error!(status, "the grace period ends and the process does not; leaving");
        };
        drop(std::thread::Builder::new().spawn(tell));
        std::thread::park_timeout(LAST_WORDS);
        std::process::exit(status);
    };
    let thread = std::thread::Builder::new().name("jobs-exit".to_owned());
    if let Err(error) = thread.spawn(wait_and_exit) {
        tracing::error!(%error, "can't start the exit's thread; only the supervisor ends a hang");
    }
}
