//! Health over HTTP: on a thread and a runtime of its own, off unless an address was given.
//!
//! 1. `/livez` fails only when the process can't help itself: its runtime or its heartbeat has stood
//!    still for a whole lease. It stays true through a drain, until the process ends.
//! 2. `/readyz` is true while the worker claims: from its registration to the first step of a drain,
//!    and not while its lease is lost.
//! 3. Neither asks the store, so that a database that is away makes nobody kill workers.
//!
//! `/metrics` does ask it how full the queues are, at most every [`DEPTH_EVERY`].

mod recorder;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio_util::sync::CancellationToken;

pub(super) use self::recorder::install;
use super::shared::{Shared, Standstill};
use crate::error::{Error, ErrorKind};

/// How often the queues are looked at for `/metrics`, at most.
const DEPTH_EVERY: Duration = Duration::from_secs(5);

/// The address that health is served on, taken before the worker starts.
#[derive(Debug)]
pub(super) struct Door(TcpListener);

impl Door {
    /// Takes an address such as `127.0.0.1:9100`.
    pub(super) fn open(address: &str) -> Result<Self, Error> {
        let refuse = |error: &dyn std::fmt::Display| {
            let what = format!("health can't be served on {address:?}: {error}");
            Error::new(ErrorKind::Configuration, what)
        };
        let address: SocketAddr = address.parse().map_err(|error| refuse(&error))?;
        let listener = TcpListener::bind(address).map_err(|error| refuse(&error))?;
        listener.set_nonblocking(true).map_err(|error| refuse(&error))?;
        Ok(Self(listener))
    }

    /// Serves until the worker is over.
    pub(super) fn serve<S>(self, shared: &Arc<Shared<S>>) -> Result<JoinHandle<()>, Error>
    where
        S: Send + Sync + 'static,
    {
        let cannot = |error: std::io::Error| {
            let what = format!("can't start the thread that serves health: {error}");
            Error::new(ErrorKind::Broken, what)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(cannot)?;
        let over = shared.over.clone();
        let router = router(shared);
        let body = move || {
            runtime.block_on(async {
                let listener = match tokio::net::TcpListener::from_std(self.0) {
                    Ok(listener) => listener,
                    Err(error) => return tracing::error!(%error, "can't serve health"),
                };
                tokio::select! {
                    served = axum::serve(listener, router).into_future() => {
                        if let Err(error) = served {
                            tracing::error!(%error, "health is not served any more");
                        }
                    }
                    () = over.cancelled() => {}
                }
            });
        };
        std::thread::Builder::new().name("jobs-health".to_owned()).spawn(body).map_err(cannot)
    }
}

/// What the answers are made of. Weak, so that a forgotten connection keeps no worker.
struct Asked<S> {
    shared: Weak<Shared<S>>,
    over: CancellationToken,
    /// When the queues were last looked at.
    looked_at: tokio::sync::Mutex<Option<Duration>>,
}

fn router<S: Send + Sync + 'static>(shared: &Arc<Shared<S>>) -> Router {
    let asked = Arc::new(Asked {
        shared: Arc::downgrade(shared),
        over: shared.over.clone(),
        looked_at: tokio::sync::Mutex::new(None),
    });
    Router::new()
        .route("/livez", get(livez::<S>))
        .route("/readyz", get(readyz::<S>))
        .route("/metrics", get(metrics::<S>))
        .with_state(asked)
}

async fn livez<S: Send + Sync>(State(asked): State<Arc<Asked<S>>>) -> Response {
    let Some(shared) = asked.shared.upgrade() else { return leaving() };
    // A drain has a deadline of its own, and killing it earlier only loses work.
    if shared.intake_closed.is_cancelled() {
        return "draining\n".into_response();
    }
    match shared.pulse.standstill(shared.elapsed(), shared.settings.lease.length()) {
        None => "live\n".into_response(),
        Some(Standstill::Heartbeat) => wedged("the heartbeat stands still\n"),
        Some(Standstill::Runtime) => wedged("the runtime stands still\n"),
    }
}

async fn readyz<S: Send + Sync>(State(asked): State<Arc<Asked<S>>>) -> Response {
    let Some(shared) = asked.shared.upgrade() else { return leaving() };
    let is_closed = shared.intake_closed.is_cancelled() || asked.over.is_cancelled();
    let not = match (is_closed, shared.worker()) {
        (false, Some(_)) => return "ready\n".into_response(),
        (true, _) => "draining\n",
        (false, None) => "no lease\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, not).into_response()
}

fn wedged(what: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, what).into_response()
}

fn leaving() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "over\n").into_response()
}

async fn metrics<S: Send + Sync>(State(asked): State<Arc<Asked<S>>>) -> Response {
    if let Some(shared) = asked.shared.upgrade() {
        look(&asked, &shared).await;
    }
    let Some(text) = recorder::rendered() else {
        let what = "the application has a recorder of its own; ask that\n";
        return (StatusCode::NOT_FOUND, what).into_response();
    };
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, text).into_response()
}

/// Measures how full the queues are, unless somebody just did.
async fn look<S>(asked: &Asked<S>, shared: &Shared<S>) {
    let mut looked_at = asked.looked_at.lock().await;
    let now = shared.elapsed();
    if looked_at.is_some_and(|at| now.saturating_sub(at) < DEPTH_EVERY) {
        return;
    }
    *looked_at = Some(now);
    let depth = shared.jobs.inspect().depth(recorder::MOST);
    match tokio::time::timeout(DEPTH_EVERY, depth).await {
        Ok(Ok(depth)) => recorder::record(&depth, shared.jobs.clock().now()),
        Ok(Err(error)) => {
            let error = jobs_core::chain(&error);
            tracing::debug!(error, "can't tell how full the queues are");
        }
        Err(_) => tracing::debug!("the store does not tell in time how full the queues are"),
    }
}
