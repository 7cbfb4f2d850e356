//! Handlers without their types: from stored text to a future, whatever the job.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::future::BoxFuture;
use jobs_core::{DecodeError, Job, Versioned};

use crate::context::{JobContext, Parts};
use crate::handler::{Ends, Handler, HandlerFn, JobError, Outcome, Takes};

/// A decoded job, ready to run.
pub(crate) type Prepared<S> =
    Box<dyn FnOnce(S, Parts) -> BoxFuture<'static, Result<Outcome, JobError>> + Send>;

/// A stored text and the major that it is decoded as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredText<'a> {
    pub(crate) major: u32,
    pub(crate) text: &'a str,
}

/// Which stored text did not decode.
#[derive(Debug)]
pub(crate) enum PrepareError {
    Payload(DecodeError),
    Checkpoint(DecodeError),
    CheckpointPanicked(Box<dyn Any + Send>),
}

/// Decodes the jobs of one kind.
pub(crate) trait Erased<S>: Send + Sync {
    fn prepare(
        &self,
        payload: StoredText<'_>,
        checkpoint: Option<StoredText<'_>>,
    ) -> Result<Prepared<S>, PrepareError>;

    /// As [`prepare`](Self::prepare), for the undo of an interrupted run.
    fn prepare_undo(
        &self,
        payload: StoredText<'_>,
        checkpoint: Option<StoredText<'_>>,
    ) -> Result<Prepared<S>, PrepareError>;

    /// Whether it can undo anything: a function can't.
    fn can_undo(&self) -> bool;
}

/// Reads a payload as its kind's type, and answers the unique key that it makes of its own fields.
#[cfg(feature = "cli")]
pub(crate) type ReadPayload = fn(StoredText<'_>) -> Result<Option<String>, String>;

#[cfg(feature = "cli")]
pub(crate) fn read_payload<J: Job>(payload: StoredText<'_>) -> Result<Option<String>, String> {
    let read = || {
        let job = J::decode(payload.major, payload.text);
        let job = job.map_err(|error| jobs_core::chain(&error))?;
        job.unique_key().transpose().map_err(|error| jobs_core::chain(&error))
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("its type panics at it".to_owned()))
}

/// A job with a [`Handler`].
pub(super) struct TraitHandler<J>(PhantomData<fn() -> J>);

/// A job with a function.
pub(super) struct FunctionHandler<J, C, R, F> {
    function: std::sync::Arc<F>,
    _signature: PhantomData<fn(J, C) -> R>,
}

impl<J> TraitHandler<J> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<J, C, R, F> FunctionHandler<J, C, R, F> {
    pub(super) fn new(function: F) -> Self {
        Self { function: std::sync::Arc::new(function), _signature: PhantomData }
    }
}

type Decoded<J> = (J, Option<<J as Job>::Checkpoint>);

fn decode<J: Job>(
    payload: StoredText<'_>,
    checkpoint: Option<StoredText<'_>>,
) -> Result<Decoded<J>, PrepareError> {
    let job = J::decode(payload.major, payload.text).map_err(PrepareError::Payload)?;
    let Some(stored) = checkpoint else {
        return Ok((job, None));
    };
    // Caught here, since further out nobody knows which of the two panicked.
    let decode = || <J::Checkpoint as Versioned>::decode(stored.major, stored.text);
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(resume) => Ok((job, Some(resume.map_err(PrepareError::Checkpoint)?))),
        Err(panic) => Err(PrepareError::CheckpointPanicked(panic)),
    }
}

impl<S, J> Erased<S> for TraitHandler<J>
where
    S: Clone + Send + Sync + 'static,
    J: Handler<S>,
{
    fn prepare(
        &self,
        payload: StoredText<'_>,
        checkpoint: Option<StoredText<'_>>,
    ) -> Result<Prepared<S>, PrepareError> {
        let (job, resume) = decode::<J>(payload, checkpoint)?;
        Ok(Box::new(move |state, parts| Box::pin(job.run(JobContext::new(state, parts, resume)))))
    }

    fn prepare_undo(
        &self,
        payload: StoredText<'_>,
        checkpoint: Option<StoredText<'_>>,
    ) -> Result<Prepared<S>, PrepareError> {
        let (job, resume) = decode::<J>(payload, checkpoint)?;
        Ok(Box::new(move |state, parts| {
            let cx = JobContext::new(state, parts, resume);
            Box::pin(async move { job.on_interrupt(cx).await.map(Outcome::from) })
        }))
    }

    fn can_undo(&self) -> bool {
        true
    }
}

impl<S, J, C, R, F> Erased<S> for FunctionHandler<J, C, R, F>
where
    S: Clone + Send + Sync + 'static,
    J: Job,
    C: 'static,
    R: Ends + Send,
    F: HandlerFn<J, C, R> + Takes<S, J, C>,
{
    fn prepare(
        &self,
        payload: StoredText<'_>,
        checkpoint: Option<StoredText<'_>>,
    ) -> Result<Prepared<S>, PrepareError> {
        let (job, resume) = decode::<J>(payload, checkpoint)?;
        let function = self.function.clone();
        Ok(Box::new(move |state, parts| {
            let cx = JobContext::new(state, parts, resume);
            Box::pin(async move { function.call(job, F::context(cx)).end().await })
        }))
    }

    fn prepare_undo(
        &self,
        _payload: StoredText<'_>,
        _checkpoint: Option<StoredText<'_>>,
    ) -> Result<Prepared<S>, PrepareError> {
        unreachable!("a registry with a function for a kind that must undo is not built")
    }

    fn can_undo(&self) -> bool {
        false
    }
}
