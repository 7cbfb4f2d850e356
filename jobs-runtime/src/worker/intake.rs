//! What the claim loop knows of ready jobs, and so what it does next: a claim, a look, or a wait.
//!
//! 1. A claim goes on where the last one ended, also after a wake-up: mostly the jobs that came are there.
//!    What is before that place, or of another route, a [look](super::look) beside it finds.
//! 2. Before it waits for long, a look has shown that nothing is ready, and nothing came and nothing was
//!    claimed since that look was sent.
//! 3. A worker that held nothing when it was woken asks for a few at first, in the quickest way.
//! 4. What a claim may take of suspects, [`suspects`](super::suspects) says.

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::{Claim, Claimed};
use jobs_core::{ClaimedJob, Lease, StoreError, WorkerId, jittered};
use tokio::sync::Notify;

use super::look::{Looks, PATIENCE, Seen};
use super::queues::offers;
use super::routes::Routes;
use super::shared::Shared;
use super::suspects::{Plan, Suspects};
use crate::log;

/// For so many jobs a worker asks at first that held nothing when it was woken: mostly one or a few came.
const FEW: u32 = 8;

pub(super) struct Intake {
    routes: Routes,
    looks: Looks,
    sight: Sight,
    /// Whether jobs came while it waited, and it has not claimed since.
    was_woken: bool,
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

/// How a claim is made.
#[derive(Debug, Clone, Copy)]
enum Way {
    Plain,
    /// Nothing else is on its way to the store.
    Idle,
    /// At most so many may run in all workers.
    Within(u32),
}

/// What a turn came to.
pub(super) enum Turn {
    Took(Vec<ClaimedJob>),
    Nothing,
    /// Nothing may be claimed until runs have ended.
    Clear,
}

impl Intake {
    pub(super) fn new(lease: Lease) -> Self {
        Self {
            routes: Routes::default(),
            looks: Looks::default(),
            sight: Sight::Open,
            was_woken: false,
            is_of_now: false,
            was_in_vain: false,
            suspects: Suspects::new(lease),
        }
    }

    /// One claim, where jobs may be ready. Without a free slot only a look: a worker that is always
    /// full must hear of suspects too.
    pub(super) async fn turn<S>(
        &mut self,
        shared: &Arc<Shared<S>>,
        worker: WorkerId,
        limit: u32,
    ) -> Result<Turn, StoreError>
    where
        S: Send + Sync + 'static,
    {
        self.take_in(shared)?;
        let is_wanted = limit == 0 || self.sight == Sight::Ahead;
        if is_wanted && self.looks.is_overdue(shared.elapsed()) {
            // All slots were taken for a while.
            self.look(shared);
            tokio::select! {
                biased;
                () = shared.intake_closed.cancelled() => return Ok(Turn::Nothing),
                () = self.looks.ended() => {}
                () = tokio::time::sleep(PATIENCE) => {}
            }
            self.take_in(shared)?;
        }
        if self.sight != Sight::Ahead {
            return Ok(Turn::Nothing);
        }
        let turn = self.claim(shared, worker, limit).await;
        let turn = turn.inspect_err(|_| self.sight = Sight::Open)?;
        if matches!(turn, Turn::Nothing) {
            self.sight = if self.is_of_now { Sight::Clear } else { Sight::Open };
        }
        // A kind that had nothing ready at the last look may have by now, and a standing backlog of
        // another kind wakes nobody.
        if self.sight == Sight::Ahead {
            if has_rung(&shared.ready).await {
                self.looks.woken();
                self.is_of_now = false;
            }
            if self.looks.is_due(shared.elapsed()) {
                self.look(shared);
            }
        }
        Ok(turn)
    }

    /// Sends a look; none may be under way.
    fn look<S>(&mut self, shared: &Arc<Shared<S>>)
    where
        S: Send + Sync + 'static,
    {
        self.routes.looking();
        let (now, shared) = (shared.elapsed(), Arc::clone(shared));
        self.looks.begin(now, async move {
            let routes = shared.store().routes(&shared.settings.queues).await;
            (routes, shared.elapsed())
        });
    }

    /// Takes in what a look saw that is over. One that failed keeps no claim back whose place is known.
    fn take_in<S>(&mut self, shared: &Shared<S>) -> Result<(), StoreError> {
        let Seen { routes, is_of_now } = match self.looks.take() {
            None => return Ok(()),
            Some(Ok(seen)) => seen,
            Some(Err(error)) if self.sight == Sight::Ahead => {
                shared.tell_failed(&log::LOOK, &error);
                return Ok(());
            }
            Some(Err(error)) => return Err(error),
        };
        shared.answered();
        let now = shared.elapsed();
        self.routes.refresh(routes, now, |route| route.judge(|kind| shared.handlers.reader(kind)));
        self.suspects.looked(now, self.routes.has_suspects());
        self.is_of_now = is_of_now;
        self.sight = Sight::Ahead;
        Ok(())
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
        if plan == Plan::Clear || limit == 0 {
            return Ok(Turn::Clear);
        }
        let most = if plan == Plan::Alone { 1 } else { limit };
        let was_woken = std::mem::take(&mut self.was_woken);
        let Some(shares) = &shared.settings.shares else {
            let is_idle = was_woken && shared.ledger.held() == 0;
            let (way, most) = if is_idle { (Way::Idle, most.min(FEW)) } else { (Way::Plain, most) };
            let heads = self.routes.heads(now, most, plan);
            let claim = Claim { worker, heads: &heads, limit: most };
            return self.take(shared, claim, way, plan).await;
        };
        for offer in offers(shares, &shared.running, shared.settings.concurrency, size(limit)) {
            let limit = offer.limit.min(most);
            let mut heads = self.routes.heads(now, limit, plan);
            heads.retain(|head| head.queue == offer.queue);
            let claim = Claim { worker, heads: &heads, limit };
            let way = offer.most_in_fleet.map_or(Way::Plain, Way::Within);
            match self.take(shared, claim, way, plan).await? {
                Turn::Nothing => {}
                turn @ (Turn::Took(_) | Turn::Clear) => return Ok(turn),
            }
        }
        Ok(Turn::Nothing)
    }

    /// One claim by a plan.
    async fn take<S>(
        &mut self,
        shared: &Shared<S>,
        claim: Claim<'_>,
        way: Way,
        plan: Plan,
    ) -> Result<Turn, StoreError> {
        let Claim { worker, heads, limit } = claim;
        let now = shared.elapsed();
        if heads.is_empty() {
            return Ok(Turn::Nothing);
        }
        shared.ledger.claim_sent();
        let claimed = match way {
            Way::Plain => shared.store().claim(claim).await,
            Way::Idle => shared.store().claim_idle(claim).await,
            Way::Within(most) => shared.store().claim_within(claim, most).await,
        };
        let jobs = match claimed {
            Ok(Claimed::Jobs(jobs)) => {
                shared.answered();
                jobs
            }
            Ok(Claimed::WorkerEnded) => {
                shared.ledger.claim_answered();
                shared.tenancy.lost(worker, shared.elapsed());
                self.is_of_now = false;
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
        self.looks.claimed();
        self.is_of_now = false;
        // Where shares bound it, another queue may have more.
        let is_short = jobs.len() < size(limit) && shared.settings.shares.is_none();
        self.sight = if is_short { Sight::Open } else { Sight::Ahead };
        Ok(Turn::Took(jobs))
    }

    /// Waits for a wake-up, for what a look sees, for the poll interval, or for the next try of a foreign
    /// route.
    pub(super) async fn wait<S>(&mut self, shared: &Arc<Shared<S>>)
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
            () = shared.ready.notified() => self.woken(shared),
            // What a queue's share kept from starting may start when something has ended.
            () = shared.ledger.changed(), if shared.settings.shares.is_some() => {
                self.sight = Sight::Ahead;
            }
            () = tokio::time::sleep(pause) => self.sight = Sight::Open,
        }
    }

    /// Jobs came: mostly where the claims go on. But where the last wake-up was of jobs for others, a look
    /// tells more, if it may be sent now; and queues that share slots are to be asked all.
    fn woken<S>(&mut self, shared: &Shared<S>) {
        self.looks.woken();
        (self.was_woken, self.is_of_now) = (true, false);
        let now = shared.elapsed();
        let may_look = !self.looks.is_running() && self.looks.rest(now).is_zero();
        let is_better = shared.settings.shares.is_some() || (self.was_in_vain && may_look);
        let is_guessed = !is_better && self.routes.guess(now);
        self.sight = if is_guessed { Sight::Ahead } else { Sight::Open };
    }

    /// Nothing more is claimed: gives back what only one worker may have.
    pub(super) async fn close<S>(&mut self, shared: &Shared<S>) {
        self.looks.close().await;
        self.suspects.give_back(shared).await;
    }
}

/// Whether it rang since it was last asked.
async fn has_rung(bell: &Notify) -> bool {
    tokio::select! {
        biased;
        () = bell.notified() => true,
        () = std::future::ready(()) => false,
    }
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
