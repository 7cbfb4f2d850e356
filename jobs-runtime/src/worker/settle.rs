//! Group commit of how runs ended: while one batch is on the wire the next gathers.
//!
//! 1. Every end is settled, given to another by the fence, or left to the close and the sweep;
//!    none is dropped while the store can be reached.
//! 2. A batch where one row fails is retried row by row, so that a poison row stops nothing else; also
//!    where the error reads as if the store were at fault: what it does not take waits apart.
//! 3. After a lost answer, and after a transaction of the application wrote about the run, the row
//!    decides what happened.

mod told;
mod untaken;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Row, SETTLED_LATE, Settled};
use jobs_core::{
    Budget, ClaimedJob, Counters, Ending, EventKind, Failure, Fence, Ladder, NewEvent, Notes,
    Retry, Run, Settlement, State, StoreError, StoreErrorKind, transition,
};
use tokio::sync::mpsc::UnboundedReceiver;

use self::told::{finished, told_all};
use self::untaken::Untaken;
use super::ledger::Entry;
use super::shared::{Shared, turn};
use crate::log;
use crate::run::Wrote;

/// At most this many settlements travel together.
const BATCH: usize = 1_000;
/// How long runs wait whose rows others hold, before they are tried again.
const LOCKED_PAUSE: Duration = Duration::from_secs(1);
/// A success that is stored so long after its first try is noted as late.
const LATE: Duration = Duration::from_secs(1);

/// A run that ended and is not settled yet.
#[derive(Debug)]
pub(crate) struct Ended {
    run: Run,
    kind: Arc<str>,
    ending: Ending,
    wrote: Wrote,
    notes: Notes,
    /// When it was tried in vain for the first time.
    tried_at: Option<Duration>,
    /// When it was tried in vain for the last time.
    failed_at: Option<Duration>,
}

impl Ended {
    /// A run whose handler has ended, or never began.
    pub(crate) fn of_run(job: &ClaimedJob, ending: Ending, entry: &Entry) -> Self {
        let Entry { kind, signals, .. } = entry;
        let (wrote, notes) = (signals.wrote(), signals.kept().take_notes());
        let (run, kind) = (Run::from(job), kind.clone());
        Self { run, kind, ending, wrote, notes, tried_at: None, failed_at: None }
    }

    /// A claim that came too late to be run.
    pub(crate) fn unstarted(job: &ClaimedJob) -> Self {
        let (run, kind) = (Run::from(job), job.kind.as_str().into());
        let (ending, wrote, notes) = (Ending::Unstarted, Wrote::Nothing, Notes::default());
        Self { run, kind, ending, wrote, notes, tried_at: None, failed_at: None }
    }

    /// A run of which nothing is known but that the store says it is ours: the answer to its claim
    /// was lost, so it never started.
    pub(crate) fn stray(fence: Fence) -> Self {
        let (counters, budget) = (Counters::default(), Budget::default());
        let run = Run { fence, counters, budget, refused: None };
        let kind = "".into();
        // Its counters are read from the row before it is settled.
        let (ending, wrote, notes) = (Ending::Unstarted, Wrote::Checkpoint, Notes::default());
        Self { run, kind, ending, wrote, notes, tried_at: None, failed_at: None }
    }

    /// The same run as a plain failure, for an outcome that the store does not take.
    fn unsettleable(&self, error: &StoreError) -> Self {
        let failure = Failure {
            class: "unsettleable".to_owned(),
            text: format!("the store did not take the run's outcome: {}", jobs_core::chain(error)),
            retry: Retry::Ladder,
        };
        let Self { run, kind, wrote, .. } = self;
        let (ending, notes) = (Ending::Failed(failure), Notes::default());
        let (run, kind, wrote) = (run.clone(), kind.clone(), *wrote);
        Self { run, kind, ending, wrote, notes, tried_at: None, failed_at: None }
    }

    /// Whether only the row knows what was written about it.
    fn is_uncertain(&self) -> bool {
        match self.wrote {
            Wrote::Nothing => false,
            Wrote::Checkpoint | Wrote::Success => true,
        }
    }
}

/// Settles until every sender is gone and the last end is settled, or the worker is over.
pub(super) async fn settle_loop<S>(shared: Arc<Shared<S>>, mut ended: UnboundedReceiver<Ended>) {
    let mut batch = Vec::new();
    // Runs whose rows others hold wait apart, and so do those that the store does not take now: they keep
    // no other waiting.
    let mut locked: Vec<Ended> = Vec::new();
    let mut untaken = Untaken::default();
    // One timer for all turns, so that ends which come all the time don't put it off.
    let mut retry = pin!(tokio::time::sleep(LOCKED_PAUSE));
    let mut again = pin!(tokio::time::sleep(untaken.pause()));
    let mut are_more = true;
    while are_more || !untaken.is_empty() {
        let had_none_locked = locked.is_empty();
        let (had_none_untaken, pause) = (untaken.is_empty(), untaken.pause());
        tokio::select! {
            biased;
            () = &mut retry, if !locked.is_empty() => {
                let (tried, mut held) = (std::mem::take(&mut locked), Vec::new());
                untaken.add(attempt(&shared, tried, &mut held).await);
                locked = held;
                retry.set(tokio::time::sleep(LOCKED_PAUSE));
            }
            () = &mut again, if !untaken.is_empty() => {
                untaken.settle(&shared, &mut locked).await;
                again.set(tokio::time::sleep(untaken.pause()));
            }
            count = ended.recv_many(&mut batch, BATCH), if are_more => {
                are_more = count > 0;
                if are_more {
                    gather(&shared, &mut ended, &mut batch).await;
                }
                untaken.add(attempt(&shared, std::mem::take(&mut batch), &mut locked).await);
            }
            () = shared.over.cancelled() => return,
        }
        if had_none_locked && !locked.is_empty() {
            retry.set(tokio::time::sleep(LOCKED_PAUSE));
        }
        if had_none_untaken && !untaken.is_empty() || untaken.pause() < pause {
            again.set(tokio::time::sleep(untaken.pause()));
        }
    }
}

/// Takes in what else ends at about the same time: runs that were just started have their first turn,
/// and then a turn of the runtime in which nothing ends is the end of it.
async fn gather<S>(
    shared: &Shared<S>,
    ended: &mut UnboundedReceiver<Ended>,
    batch: &mut Vec<Ended>,
) {
    shared.starts.had_turns().await;
    while batch.len() < BATCH {
        turn().await;
        let before = batch.len();
        while batch.len() < BATCH
            && let Ok(next) = ended.try_recv()
        {
            batch.push(next);
        }
        if batch.len() == before {
            return;
        }
    }
}

/// Tries to settle a batch, once. Answers the runs that the store could not take now, and puts apart those
/// whose rows others hold.
async fn attempt<S>(shared: &Shared<S>, batch: Vec<Ended>, locked: &mut Vec<Ended>) -> Vec<Ended> {
    let tried_at = shared.elapsed();
    let before = locked.len();
    let (certain, mut left) = certain(shared, batch, locked).await;
    left.extend(settle_certain(shared, certain, locked).await);
    for ended in left.iter_mut().chain(&mut locked[before..]) {
        ended.tried_at.get_or_insert(tried_at);
    }
    left
}

/// Settles runs of which no row has to be asked. Answers those that the store could not take now.
async fn settle_certain<S>(
    shared: &Shared<S>,
    mut batch: Vec<Ended>,
    locked: &mut Vec<Ended>,
) -> Vec<Ended> {
    if batch.is_empty() {
        return batch;
    }
    let settlements: Vec<_> = batch.iter().map(|ended| settlement(shared, ended)).collect();
    shared.meters.settling(settlements.len());
    let error = match shared.store().settle(&shared.author(), &settlements).await {
        Ok(answers) => {
            shared.answered();
            locked.extend(told_all(shared, batch, settlements.iter().zip(answers)));
            return Vec::new();
        }
        Err(error) => error,
    };
    if !is_about_no_row(&error) {
        locked.extend(settle_one_by_one(shared, batch, &error).await);
        return Vec::new();
    }
    if error.is_ambiguous() {
        // It may have been written all the same: from now on the rows decide.
        for ended in &mut batch {
            ended.wrote = ended.wrote.max(Wrote::Checkpoint);
        }
    }
    untaken::tell(shared, &mut batch, &error);
    batch
}

/// Settles a batch that was refused as a whole row by row. A run that can't be settled as it ended
/// is settled as a plain failure, and one that can't be settled at all is left to the sweep. Answers
/// the runs to be tried again later.
async fn settle_one_by_one<S>(
    shared: &Shared<S>,
    batch: Vec<Ended>,
    cause: &StoreError,
) -> Vec<Ended> {
    tracing::warn!(
        error = jobs_core::chain(cause),
        runs = batch.len(),
        "a batch of settlements was refused; settling one by one"
    );
    let mut locked = Vec::new();
    for mut ended in batch {
        match settle_one(shared, &ended).await {
            Ok((settlement, answer)) => {
                locked.extend(told_all(shared, vec![ended], [(&settlement, answer)]));
            }
            // No row's fault after all: it is tried again with those that others hold.
            Err(error) if is_about_no_row(&error) => {
                if error.is_ambiguous() {
                    ended.wrote = ended.wrote.max(Wrote::Checkpoint);
                }
                locked.push(ended);
            }
            Err(error) => {
                let plain = ended.unsettleable(&error);
                match settle_one(shared, &plain).await {
                    Ok((settlement, answer)) => {
                        locked.extend(told_all(shared, vec![plain], [(&settlement, answer)]));
                    }
                    Err(error) if is_about_no_row(&error) => locked.push(ended),
                    Err(error) => tracing::error!(
                        job = plain.run.fence.job.0,
                        kind = &*plain.kind,
                        error = jobs_core::chain(&error),
                        "a run can't be settled; its job stays claimed until this worker leaves"
                    ),
                }
            }
        }
    }
    locked
}

/// Whether the store as a whole is at fault: away, busy, full, or for the time of a fail-over a
/// standby. What ended is then kept, since its runs would start again.
fn is_about_no_row(error: &StoreError) -> bool {
    use StoreErrorKind::{Configuration, ReadOnly, Schema};
    error.is_transient() || matches!(error.kind(), ReadOnly | Schema | Configuration)
}

async fn settle_one<S>(
    shared: &Shared<S>,
    ended: &Ended,
) -> Result<(Settlement, Settled), StoreError> {
    let settlement = settlement(shared, ended);
    let answers =
        shared.store().settle(&shared.author(), std::slice::from_ref(&settlement)).await?;
    Ok((settlement, answers.first().copied().unwrap_or(Settled::LeaseLost)))
}

/// Asks the rows about the runs whose fate only they know. What is settled already needs nothing; the
/// others get their counters as stored; what others hold is put apart. Answers the runs to be settled,
/// and those whose rows can't be read now. A row that never can is left to the end of this worker.
async fn certain<S>(
    shared: &Shared<S>,
    batch: Vec<Ended>,
    locked: &mut Vec<Ended>,
) -> (Vec<Ended>, Vec<Ended>) {
    let (asked, mut certain): (Vec<_>, Vec<_>) = batch.into_iter().partition(Ended::is_uncertain);
    if asked.is_empty() {
        return (certain, asked);
    }
    let fences: Vec<Fence> = asked.iter().map(|ended| ended.run.fence).collect();
    let error = match shared.store().reread(&fences).await {
        Ok(rows) => {
            let read = asked.into_iter().zip(rows);
            certain.extend(read.filter_map(|(ended, row)| as_read(shared, ended, row, locked)));
            return (certain, Vec::new());
        }
        Err(error) => error,
    };
    if !shared.is_outage(&error, "reread runs") {
        log::SETTLE.write(shared.elapsed(), || {
            let error = jobs_core::chain(&error);
            tracing::warn!(error, runs = fences.len(), "can't reread runs; trying again");
        });
    }
    if is_about_no_row(&error) {
        return (certain, asked);
    }
    let mut unread = Vec::new();
    for ended in asked {
        match shared.store().reread(&[ended.run.fence]).await {
            Ok(rows) => {
                let row = rows.first().copied().unwrap_or(Row::Missing);
                certain.extend(as_read(shared, ended, row, locked));
            }
            Err(error) if is_about_no_row(&error) => unread.push(ended),
            Err(error) => tracing::error!(
                job = ended.run.fence.job.0,
                kind = &*ended.kind,
                error = jobs_core::chain(&error),
                "a run can't be reread; its job stays claimed until this worker leaves"
            ),
        }
    }
    (certain, unread)
}

/// What is left to settle of a run, by its row.
fn as_read<S>(
    shared: &Shared<S>,
    ended: Ended,
    row: Row,
    locked: &mut Vec<Ended>,
) -> Option<Ended> {
    match row {
        Row::Running(counters) => return Some(uncommitted(ended, counters)),
        Row::Settled(state) => {
            finished(shared, &as_settled(ended, state), Settled::Applied(state));
        }
        Row::Taken(_) | Row::Missing => finished(shared, &ended, Settled::LeaseLost),
        Row::Locked => locked.push(ended),
    }
    None
}

/// A run that its row shows as settled already. Where its own transaction wrote its success, that is
/// how it ended, whatever the handler said after the commit.
fn as_settled(ended: Ended, state: State) -> Ended {
    match (ended.wrote, state, &ended.ending) {
        (Wrote::Success, State::Succeeded, Ending::Done) => ended,
        (Wrote::Success, State::Succeeded, said) => {
            let (job, kind) = (ended.run.fence.job.0, &*ended.kind);
            tracing::warn!(
                job,
                kind,
                ?said,
                "the handler ended so after its success was committed"
            );
            Ended { ending: Ending::Done, ..ended }
        }
        (Wrote::Nothing | Wrote::Checkpoint | Wrote::Success, _, _) => ended,
    }
}

/// A run that its row still shows as running, with the counters that stand there. Where the handler
/// wrote its success and says that it is done, its transaction was not committed.
fn uncommitted(ended: Ended, counters: Counters) -> Ended {
    let run = Run { counters, ..ended.run };
    let ending = match (ended.wrote, ended.ending) {
        (Wrote::Success, Ending::Done) => finish_not_committed(),
        (Wrote::Nothing | Wrote::Checkpoint | Wrote::Success, ending) => ending,
    };
    Ended { run, ending, ..ended }
}

fn settlement<S>(shared: &Shared<S>, ended: &Ended) -> Settlement {
    let draw = shared.draw();
    let settlement = match shared.handlers.handled(&ended.kind) {
        Some(handled) => transition(&ended.run, &ended.ending, &handled.ladder, draw),
        None => transition(&ended.run, &ended.ending, &Ladder::default(), draw),
    };
    let mut notes = ended.notes.clone();
    if ended.ending != Ending::Done {
        // Only what succeeded has a result.
        notes.result = None;
    }
    let event = settlement.event.or_else(|| late(ended, || shared.elapsed()));
    Settlement { notes, event, ..settlement }
}

/// What the history says of a clean success that could not be stored at once: else what the run seems to
/// have taken would be the handler's doing. It counts from the first try, so it never says too much.
fn late(ended: &Ended, now: impl FnOnce() -> Duration) -> Option<NewEvent> {
    let tried_at = ended.tried_at?;
    let late = now().saturating_sub(tried_at);
    (ended.ending == Ending::Done && late >= LATE).then(|| NewEvent {
        kind: EventKind::SettledLate,
        class: SETTLED_LATE.to_owned(),
        text: format!("its handler ended {} s before that could be stored", late.as_secs()),
    })
}

/// The failure of a handler that said it was done, though its `done_in` was not committed.
fn finish_not_committed() -> Ending {
    Ending::Failed(Failure {
        class: "finish_not_committed".to_owned(),
        text: "the handler called `done_in` and returned, but its transaction was not committed; \
               commit it before returning"
            .to_owned(),
        retry: Retry::Ladder,
    })
}
