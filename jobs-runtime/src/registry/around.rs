//! Middleware: what runs around every handler of a build.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Prepared;
use crate::context::Parts;
use crate::handler::{JobError, Outcome};
use crate::run::RunInfo;

pub(super) type Around<S> =
    dyn Fn(S, Arc<RunInfo>, Next) -> BoxFuture<'static, Result<Outcome, JobError>> + Send + Sync;

/// The rest of a run, as a middleware sees it.
pub struct Next(BoxFuture<'static, Result<Outcome, JobError>>);

impl Next {
    /// Runs the rest: the next middleware, or the handler.
    ///
    /// # Errors
    /// What the handler returned.
    pub async fn run(self) -> Result<Outcome, JobError> {
        self.0.await
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// A decoded job inside its middleware, the first added outermost.
pub(super) fn wrapped<S>(
    around: &[Arc<Around<S>>],
    state: &S,
    prepared: Prepared<S>,
    parts: Parts,
) -> BoxFuture<'static, Result<Outcome, JobError>>
where
    S: Clone + Send + Sync + 'static,
{
    let (info, state) = (parts.info.clone(), state.clone());
    if around.is_empty() {
        return async move { prepared(state, parts).await }.boxed();
    }
    let innermost = {
        let state = state.clone();
        async move { prepared(state, parts).await }.boxed()
    };
    around.iter().rev().fold(innermost, |rest, around| {
        let (around, state, info) = (around.clone(), state.clone(), info.clone());
        async move { around(state, info, Next(rest)).await }.boxed()
    })
}
