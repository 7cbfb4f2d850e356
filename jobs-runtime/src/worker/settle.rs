//! Group commit of how runs ended: while one batch is on the wire the next gathers.
//!
//! 1. Every end is settled, given to another by the fence, or left to the close and the sweep;
//!    none is dropped while the store can be reached.
//! 2. A batch where one row fails is retried row by row, so that a poison row stops nothing else.
//! 3. After a lost answer, and after a transaction of the application wrote about the run, the row
//!    decides what happened.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Row, Settled};
use jobs_core::{
    ClaimedJob, Counters, Ending, Failure, Fence, Ladder, Retry, Run, Settlement, State,
    StoreError, transition,
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::shared::{Shared, Tally};
use crate::log;
use crate::run::Wrote;

/// At most this many settlements travel together.
const BATCH: usize = 1_000;
/// The longest pause between two tries while the store can't be reached.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A run that ended and is not settled yet.
#[derive(Debug)]
pub(crate) struct Ended {
    run: Run,
    kind: String,
    ending: Ending,
    wrote: Wrote,
}

impl Ended {
    pub(crate) fn new(job: &ClaimedJob, ending: Ending, wrote: Wrote) -> Self {
        Self { run: Run::from(job), kind: job.kind.clone(), ending, wrote }
    }

    /// Whether only the row knows what the handler's own writes did.
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
    loop {
        let count = tokio::select! {
            biased;
            count = ended.recv_many(&mut batch, BATCH) => count,
            () = shared.over.cancelled() => 0,
        };
        if count == 0 {
            return;
        }
        gather(&mut ended, &mut batch).await;
        let fences: Vec<Fence> = batch.iter().map(|ended| ended.run.fence).collect();
        settle_batch(&shared, std::mem::take(&mut batch)).await;
        shared.ledger.settled(fences.into_iter());
    }
}

/// Takes in what else ends at about the same time: a turn of the runtime in which nothing ends is
/// the end of it, and no clock is waited for.
async fn gather(ended: &mut UnboundedReceiver<Ended>, batch: &mut Vec<Ended>) {
    while batch.len() < BATCH {
        tokio::task::yield_now().await;
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

/// Settles a batch, however often that takes, until the worker is over.
async fn settle_batch<S>(shared: &Shared<S>, batch: Vec<Ended>) {
    let mut batch = certain(shared, batch).await;
    let mut settlements: Vec<Settlement> =
        batch.iter().map(|ended| settlement(shared, ended)).collect();
    let mut pause = Duration::from_millis(50);
    while !settlements.is_empty() {
        match shared.store().settle(&shared.author(), &settlements).await {
            Ok(answers) => {
                told_all(shared, &batch, &settlements, &answers);
                let mut locked = answers.iter().map(|answer| *answer == Settled::Locked);
                batch.retain(|_| locked.next().unwrap_or(false));
                let mut locked = answers.iter().map(|answer| *answer == Settled::Locked);
                settlements.retain(|_| locked.next().unwrap_or(false));
                if batch.is_empty() || is_over_after(shared, pause).await {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) if error.is_transient() => {
                log::SETTLE.write(shared.elapsed(), || {
                    let error = jobs_core::chain(&error);
                    tracing::warn!(error, runs = batch.len(), "can't settle; trying again");
                });
                if is_over_after(shared, pause).await {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return settle_one_by_one(shared, &batch, &settlements, &error).await,
        }
    }
}

async fn settle_one_by_one<S>(
    shared: &Shared<S>,
    batch: &[Ended],
    settlements: &[Settlement],
    cause: &StoreError,
) {
    tracing::warn!(
        error = jobs_core::chain(cause),
        runs = batch.len(),
        "a batch of settlements was refused; settling one by one"
    );
    for (ended, settlement) in batch.iter().zip(settlements) {
        let one = std::slice::from_ref(settlement);
        match shared.store().settle(&shared.author(), one).await {
            Ok(answers) => told_all(shared, std::slice::from_ref(ended), one, &answers),
            Err(error) => tracing::error!(
                job = ended.run.fence.job.0,
                kind = ended.kind,
                error = jobs_core::chain(&error),
                "a run can't be settled; its claim is given back by the next audit"
            ),
        }
    }
}

/// Asks the rows about the runs that a transaction of the application wrote about. What is settled
/// already needs nothing; the others get their counters as stored.
async fn certain<S>(shared: &Shared<S>, batch: Vec<Ended>) -> Vec<Ended> {
    let asked: Vec<Fence> =
        batch.iter().filter(|ended| ended.is_uncertain()).map(|ended| ended.run.fence).collect();
    if asked.is_empty() {
        return batch;
    }
    let mut pause = Duration::from_millis(50);
    let rows = loop {
        match shared.store().reread(&asked).await {
            Ok(rows) if !rows.contains(&Row::Locked) => break rows,
            Ok(_) => {
                if is_over_after(shared, pause).await {
                    return Vec::new();
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                log::SETTLE.write(shared.elapsed(), || {
                    let error = jobs_core::chain(&error);
                    tracing::warn!(error, runs = asked.len(), "can't reread runs; trying again");
                });
                if is_over_after(shared, pause).await {
                    return Vec::new();
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    };
    let mut rows = rows.into_iter();
    let mut left = Vec::with_capacity(batch.len());
    for ended in batch {
        match ended.is_uncertain().then(|| rows.next()).flatten() {
            None => left.push(ended),
            Some(Row::Running(counters)) => left.push(uncommitted(ended, counters)),
            Some(Row::Settled(state)) => told(shared, &ended, Settled::Applied(state)),
            // Those were read again above.
            Some(Row::Locked) => left.push(ended),
            Some(Row::Taken(_) | Row::Missing) => told(shared, &ended, Settled::LeaseLost),
        }
    }
    left
}

/// A run that its row still shows as running, with the counters that stand there. Where the handler
/// wrote its success and says that it is done, its transaction was not committed.
fn uncommitted(ended: Ended, counters: Counters) -> Ended {
    let run = Run { counters, ..ended.run };
    let ending = match (ended.wrote, ended.ending) {
        (Wrote::Success, Ending::Done) => finish_not_committed(),
        (Wrote::Nothing | Wrote::Checkpoint | Wrote::Success, ending) => ending,
    };
    Ended { run, kind: ended.kind, ending, wrote: ended.wrote }
}

fn settlement<S>(shared: &Shared<S>, ended: &Ended) -> Settlement {
    let draw = shared.draw();
    match shared.handlers.handled(&ended.kind) {
        Some(handled) => transition(&ended.run, &ended.ending, &handled.ladder, draw),
        None => transition(&ended.run, &ended.ending, &Ladder::default(), draw),
    }
}

fn told_all<S>(
    shared: &Shared<S>,
    batch: &[Ended],
    settlements: &[Settlement],
    answers: &[Settled],
) {
    for ((ended, settlement), answer) in batch.iter().zip(settlements).zip(answers) {
        told(shared, ended, *answer);
        if let Settled::Applied(state) = answer
            && state.is_waiting()
            && settlement.state == State::Scheduled
        {
            shared.scheduled.notify_one();
        }
    }
}

/// Counts and logs one answer.
fn told<S>(shared: &Shared<S>, ended: &Ended, answer: Settled) {
    let (job, kind) = (ended.run.fence.job.0, ended.kind.as_str());
    let state = match answer {
        Settled::Applied(state) => state,
        Settled::LeaseLost => {
            tracing::warn!(job, kind, "the run had lost its claim; its outcome is dropped");
            return;
        }
        Settled::Locked => {
            tracing::warn!(job, kind, "another transaction holds the job's row; it is not settled");
            return;
        }
    };
    match &ended.ending {
        Ending::Done => {
            Tally::count(&shared.tally.settled);
            tracing::debug!(job, kind, %state, "succeeded");
        }
        Ending::Failed(Failure { class, text, .. })
        | Ending::Unreadable(Failure { class, text, .. }) => {
            Tally::count(&shared.tally.settled);
            tracing::warn!(job, kind, %state, class, error = text, "failed");
        }
        Ending::Snoozed(wait) => {
            Tally::count(&shared.tally.settled);
            tracing::debug!(job, kind, %state, ?wait, "snoozed");
        }
        Ending::Retired | Ending::MalformedVersion(_) => {
            Tally::count(&shared.tally.settled);
            tracing::warn!(job, kind, %state, ending = ?ended.ending, "dead letter");
        }
        Ending::Refused { refusal, text, .. } => {
            Tally::count(&shared.tally.released);
            tracing::info!(job, kind, %state, %refusal, text, "refused");
        }
        Ending::Interrupted(interruption) => {
            Tally::count(&shared.tally.interrupted);
            let (class, text) = (interruption.class(), interruption.text());
            tracing::info!(job, kind, %state, class, text, "interrupted");
        }
        Ending::Unstarted => {
            Tally::count(&shared.tally.released);
            tracing::debug!(job, kind, %state, "released unstarted");
        }
        Ending::Crashed => tracing::warn!(job, kind, %state, "crashed"),
    }
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

async fn is_over_after<S>(shared: &Shared<S>, pause: Duration) -> bool {
    tokio::time::timeout(pause, shared.over.cancelled()).await.is_ok()
}
