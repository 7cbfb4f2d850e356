//! The claim loop: takes jobs for free slots, and no others.
//!
//! 1. A claim never asks for more than the slots that are free when it is sent.
//! 2. A claim that was answered after the stop, or under an earlier worker id, is given back unrun
//!    or not run at all.
//! 3. A claim is never cancelled: once sent, its answer is waited for.
//! 4. A claim goes on where the last one ended, also when a hint says that jobs came: mostly they are
//!    there. What is before that place, or of another route, a [look](super::look) beside it finds.
//! 5. What a claim may take of suspects, [`suspects`](super::suspects) says.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Claim, Claimed};
use jobs_core::{ClaimedJob, StoreError, WorkerId, jittered};

use super::lease::Tenure;
use super::look::{Looks, Seen};
use super::queues::offers;
use super::routes::Routes;
use super::runners::Runners;
use super::settle::Ended;
use super::shared::{Shared, turn};
use super::suspects::{Plan, Suspects};
use crate::log;
use crate::run::Reason;

/// How long a full worker goes without a look at what waits, whatever its lease: it must hear of
/// suspects while they wait.
const FULL: Duration = Duration::from_secs(10);

/// Claims until the intake is closed; every claimed job is then accounted for in the ledger.
pub(super) async fn claim_loop<S>(shared: Arc<Shared<S>>)
where
    S: Clone + Send + Sync + 'static,
{
    let suspects = Suspects::new(shared.tenancy.lease());
    let mut intake = Intake {
        routes: Routes::default(),
        looks: Looks::default(),
        sight: Sight::Open,
        is_of_now: false,
        was_in_vain: false,
        suspects,
    };
    {
        // Dropped when the claiming ends, and also when it panics or is dropped half-way.
        let _ended = shared.intake_ended.clone().drop_guard();
        claim_until_closed(&shared, &mut intake).await;
    }
    intake.suspects.give_back(&shared).await;
}

async fn claim_until_closed<S>(shared: &Arc<Shared<S>>, intake: &mut Intake)
where
    S: Clone + Send + Sync + 'static,
{
    let mut tenure = shared.tenancy.watch();
    let runners = Runners::new(shared);
    loop {
        let worker = tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => return,
            held = tenure.wait_for(|tenure| *tenure != Tenure::Lost) => match held.as_deref() {
                Ok(Tenure::Held(worker)) => *worker,
                Ok(Tenure::Lost | Tenure::Closed) | Err(_) => return,
            },
        };
        let free = gathered(shared).await;
        if free == 0 && !has_waited(shared, shared.tenancy.lease().heartbeat().min(FULL)).await {
            continue;
        }
        let limit = u32::try_from(free).unwrap_or(u32::MAX);
        match intake.turn(shared, worker, limit).await {
            Ok(Turn::Took(jobs)) => {
                shared.answered();
                start(shared, &runners, worker, jobs);
            }
            Ok(Turn::Nothing) => {
                shared.answered();
                intake.wait(shared).await;
            }
            Ok(Turn::Clear) => drop(has_waited(shared, shared.settings.poll_interval).await),
            Err(error) => {
                if !shared.is_outage(&error, "claim") {
                    log::CLAIM.write(shared.elapsed(), || {
                        let error = jobs_core::chain(&error);
                        tracing::warn!(error, "can't claim; trying again");
                    });
                }
                intake.sight = Sight::Open;
                let pause = jittered(shared.settings.poll_interval, shared.draw());
                drop(tokio::time::timeout(pause, shared.intake_closed.cancelled()).await);
            }
        }
    }
}

/// How many slots are free, once runs that are about to end have ended: a claim for many slots costs
/// little more than one for a single slot. Those that were just started have their first turn, and then
/// a turn of the runtime that frees nothing more ends the wait.
async fn gathered<S>(shared: &Shared<S>) -> usize {
    shared.starts.had_turns().await;
    let mut free = shared.ledger.free();
    while 0 < free && free < shared.settings.concurrency {
        turn().await;
        let before = std::mem::replace(&mut free, shared.ledger.free());
        if free <= before {
            break;
        }
    }
    free
}

/// Waits until a run ends, or the intake is closed, but not for longer than this; answers whether it
/// was as long.
async fn has_waited<S>(shared: &Shared<S>, longest: Duration) -> bool {
    tokio::select! {
        biased;
        () = shared.intake_closed.cancelled() => false,
        () = shared.ledger.changed() => false,
        () = tokio::time::sleep(longest) => true,
    }
}

struct Intake {
    routes: Routes,
    looks: Looks,
    sight: Sight,
    /// Whether nothing came and nothing was claimed since the look was sent that the routes are from.
    is_of_now: bool,
    /// Whether the last claim gave nothing.
    was_in_vain: bool,
    suspects: Suspects,
}

/// What is known of jobs that are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// There may be some where the claims go on.
    Ahead,
    /// There are none where the claims go on; elsewhere there may be.
    Open,
    /// There are none.
    Clear,
}

enum Turn {
    Took(Vec<ClaimedJob>),
    Nothing,
    /// Nothing may be claimed until runs have ended.
    Clear,
}

impl Intake {
    /// One claim, where jobs may be ready. Without a free slot only a look: a worker that is always
    /// full must hear of suspects too.
    async fn turn<S>(
        &mut self,
        shared: &Arc<Shared<S>>,
        worker: WorkerId,
        limit: u32,
    ) -> Result<Turn, StoreError>
    where
        S: Send + Sync + 'static,
    {
        if limit == 0 && self.looks.is_due(shared.elapsed()) {
            self.look(shared);
        }
        if limit == 0 && self.looks.is_running() {
            self.looks.ended().await;
        }
        if let Some(seen) = self.looks.take() {
            self.take_in(shared, seen?);
        }
        if self.sight != Sight::Ahead {
            return Ok(Turn::Nothing);
        }
        let turn = self.claim(shared, worker, limit).await?;
        if matches!(turn, Turn::Nothing) {
            self.sight = if self.is_of_now { Sight::Clear } else { Sight::Open };
        }
        // A kind that had nothing ready at the last look may have by now, and a standing backlog of
        // another kind wakes nobody.
        if self.sight == Sight::Ahead && self.looks.is_due(shared.elapsed()) {
            self.look(shared);
        }
        Ok(turn)
    }

    fn look<S>(&mut self, shared: &Arc<Shared<S>>)
    where
        S: Send + Sync + 'static,
    {
        self.routes.looking();
        self.looks.begin(shared);
    }

    fn take_in<S>(&mut self, shared: &Shared<S>, seen: Seen) {
        let now = shared.elapsed();
        self.routes
            .refresh(seen.routes, now, |route| route.judge(|kind| shared.handlers.reader(kind)));
        self.suspects.listed(now, self.routes.has_suspects());
        self.is_of_now = seen.is_of_now;
        self.sight = Sight::Ahead;
    }

    async fn claim<S>(
        &mut self,
        shared: &Shared<S>,
        worker: WorkerId,
        limit: u32,
    ) -> Result<Turn, StoreError> {
        let now = shared.elapsed();
        let are_others_ready =
            self.routes.has_suspects() && !self.routes.heads(now, 1, Plan::Apart).is_empty();
        let plan = self.suspects.decide(shared, worker, are_others_ready).await;
        let limit = if plan == Plan::Alone { limit.min(1) } else { limit };
        if plan == Plan::Clear || limit == 0 {
            return Ok(Turn::Clear);
        }
        let Some(shares) = &shared.settings.shares else {
            let heads = self.routes.heads(now, limit, plan);
            let claim = Claim { worker, heads: &heads, limit };
            return self.take(shared, claim, None, plan).await;
        };
        for offer in offers(shares, &shared.running, shared.settings.concurrency, size(limit)) {
            let mut heads = self.routes.heads(now, offer.limit, plan);
            heads.retain(|head| head.queue == offer.queue);
            let claim = Claim { worker, heads: &heads, limit: offer.limit };
            let most = offer.most_in_fleet;
            match self.take(shared, claim, most, plan).await? {
                Turn::Nothing => {}
                turn @ (Turn::Took(_) | Turn::Clear) => return Ok(turn),
            }
        }
        Ok(Turn::Nothing)
    }

    /// One claim by a plan, of jobs of which at most `most` may run in all workers.
    async fn take<S>(
        &mut self,
        shared: &Shared<S>,
        claim: Claim<'_>,
        most: Option<u32>,
        plan: Plan,
    ) -> Result<Turn, StoreError> {
        let Claim { worker, heads, limit } = claim;
        let now = shared.elapsed();
        if heads.is_empty() {
            return Ok(Turn::Nothing);
        }
        shared.ledger.claim_sent();
        let claimed = match most {
            None => shared.store().claim(claim).await,
            Some(most) => shared.store().claim_within(claim, most).await,
        };
        let jobs = match claimed {
            Ok(Claimed::Jobs(jobs)) => jobs,
            Ok(Claimed::WorkerEnded) => {
                shared.ledger.claim_answered();
                shared.tenancy.lost(worker, shared.elapsed());
                return Ok(Turn::Nothing);
            }
            Err(error) => {
                shared.ledger.claim_answered();
                return Err(error);
            }
        };
        self.routes.note(heads, &jobs, now, shared.draw());
        self.was_in_vain = jobs.is_empty();
        if self.was_in_vain {
            shared.ledger.claim_answered();
            return Ok(Turn::Nothing);
        }
        let kinds: Vec<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
        shared.meters.claimed(&kinds);
        if plan == Plan::Alone {
            self.suspects.started();
        }
        self.changed();
        // Where shares bound it, another queue may have more.
        let is_short = jobs.len() < size(limit) && shared.settings.shares.is_none();
        self.sight = if is_short { Sight::Open } else { Sight::Ahead };
        Ok(Turn::Took(jobs))
    }

    /// Waits for a hint, for what a look sees, for the poll interval, or for the next try of a foreign
    /// route.
    async fn wait<S>(&mut self, shared: &Arc<Shared<S>>)
    where
        S: Send + Sync + 'static,
    {
        let now = shared.elapsed();
        let poll = jittered(shared.settings.poll_interval, shared.draw());
        let pause = match self.sight {
            Sight::Ahead => return,
            Sight::Open if self.looks.is_running() => Duration::MAX,
            Sight::Open => self.looks.rest(now),
            Sight::Clear => {
                let probe = self.routes.next_probe_at().map(|at| at.saturating_sub(now));
                probe.map_or(poll, |probe| probe.clamp(Duration::from_millis(1), poll))
            }
        };
        if self.sight == Sight::Open && pause.is_zero() {
            self.look(shared);
            return;
        }
        tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => {}
            () = self.looks.ended() => {}
            () = shared.ready.notified() => self.hint(now),
            // What a queue's share kept from starting may start when something has ended.
            () = shared.ledger.changed(), if shared.settings.shares.is_some() => {
                self.sight = Sight::Ahead;
            }
            () = tokio::time::sleep(pause) => self.sight = Sight::Open,
        }
    }

    /// What was seen so far is not all any more.
    fn changed(&mut self) {
        self.looks.changed();
        self.is_of_now = false;
    }

    /// Jobs came: mostly where the claims go on. But where the last hint was of jobs for others, a look
    /// tells more, if it may be sent now.
    fn hint(&mut self, now: Duration) {
        self.changed();
        let may_look = !self.looks.is_running() && self.looks.rest(now).is_zero();
        let is_guessed = !(self.was_in_vain && may_look) && self.routes.guess(now);
        self.sight = if is_guessed { Sight::Ahead } else { Sight::Open };
    }
}

/// Starts what was claimed, or gives it back where it came too late.
fn start<S>(shared: &Shared<S>, runners: &Runners<S>, worker: WorkerId, jobs: Vec<ClaimedJob>)
where
    S: Clone + Send + Sync + 'static,
{
    let is_ours = shared.worker() == Some(worker);
    let is_late = shared.intake_closed.is_cancelled() || !is_ours;
    let kind = |kind: &str| -> Arc<str> {
        let handled = shared.handlers.handled(kind);
        handled.map_or_else(|| kind.into(), |handled| handled.kind.clone())
    };
    let entries = jobs.chunk_by(|a, b| a.kind == b.kind).flat_map(|alike| {
        let kind = kind(&alike[0].kind);
        alike.iter().map(move |job| (job.fence, kind.clone()))
    });
    let entries = shared.ledger.begin(entries);
    if is_late {
        for (job, entry) in jobs.iter().zip(&entries) {
            shared.ledger.ended(entry);
            drop(shared.ended.send(Ended::unstarted(job)));
        }
    } else {
        shared.starts.add(jobs.len());
        if shared.settings.shares.is_some() {
            for job in &jobs {
                shared.running.begin(&job.queue);
            }
        }
        runners.start(jobs, entries);
    }
    shared.ledger.claim_answered();
    if shared.worker() != Some(worker) {
        // The lease was lost while they were begun; whoever aborted the others missed these.
        shared.ledger.abort_all(Reason::Lease);
    }
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
