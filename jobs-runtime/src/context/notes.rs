//! What a handler tells people and whoever waits for its job.

use std::fmt;

use jobs_core::{MAX_PROGRESS_BYTES, MAX_RESULT_BYTES, storable};
use serde::Serialize;

use super::JobContext;
use crate::handler::JobError;

impl<S, C> JobContext<S, C> {
    /// Tells people how far the run has come, such as `120 of 400`. Costs a handler next to nothing:
    /// the latest text is written within about a second, and at the end of the run.
    ///
    /// A text above [`MAX_PROGRESS_BYTES`] is cut in the middle. It is kept over runs until another
    /// one is told.
    pub fn progress(&self, text: impl fmt::Display) {
        let text = storable(&text.to_string(), MAX_PROGRESS_BYTES);
        if self.parts.signals.kept().tell(text) {
            self.parts.board.put(self.fence(), self.parts.signals.clone());
        }
    }

    /// Leaves a small result with the job, for whoever waits for it or looks at it: any value that
    /// is JSON. It is stored if and when the run succeeds, also by
    /// [`done_in`](Self::done_in), before which it is to be set; the latest one counts.
    ///
    /// # Errors
    /// A permanent one when it can't be encoded, or, of the class `result_too_large`, when it is
    /// larger than [`MAX_RESULT_BYTES`]: store the bulk elsewhere and leave a reference.
    pub fn set_result<T: Serialize + ?Sized>(&self, result: &T) -> Result<(), JobError> {
        let text = jobs_core::encode(result).map_err(|error| JobError::from(error).permanent())?;
        if text.len() > MAX_RESULT_BYTES {
            let text = format!(
                "the result has {} bytes, more than the limit of {MAX_RESULT_BYTES}; store the bulk \
                 elsewhere and leave a reference",
                text.len()
            );
            return Err(JobError::new(text).class("result_too_large").permanent());
        }
        self.parts.signals.kept().keep_result(text);
        Ok(())
    }
}
