//! A memory store with one planted fault.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jobs_core::store::conformance::{MemorySubject, RawRow, Subject, Tampering};
use jobs_core::store::{
    Advanced, Author, CheckpointSave, Claim, Claimed, Declaration, Duty, Enqueued, Heartbeat, Held,
    Inspect, Leaving, NewWorker, Operate, Phase, Promoted, ReadyRoute, Renewed, Retention, Row,
    Saved, ScheduleView, Schedules, Settled, Standing, Step, Store, Strand, Sweep, Swept, Tick,
    Transaction, Transactions, Wake,
};
use jobs_core::{
    BuildId, Fence, JobId, NewJob, Notes, ProgressNote, QueueName, Route, ScheduleName, Settlement,
    State, StoreError, StoreId, WorkerId,
};

type Result<T> = std::result::Result<T, StoreError>;

/// What a careless author of a store could get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Settlements are written whatever their claim number.
    Fence,
    /// Renewals are accepted but not written, so the sweep takes workers that renewed.
    Sweep,
    /// A scheduled job does not bind its unique key.
    Unique,
    /// A rollback commits.
    Rollback,
    /// A step of a schedule is taken whatever its leader saw.
    Outrun,
}

pub(crate) struct Faulty {
    subject: MemorySubject,
    fault: Fault,
}

impl Faulty {
    pub(crate) fn new(fault: Fault, seed: u64) -> Self {
        Self { subject: MemorySubject::new(seed), fault }
    }

    async fn state(&self, id: JobId) -> Option<State> {
        let record = self.subject.inspect().job(id).await.unwrap();
        record.map(|record| record.state)
    }

    /// The settlement under the number that the job has now.
    async fn unfenced(&self, settlement: &Settlement) -> Settlement {
        let mut settlement = settlement.clone();
        let record = self.subject.inspect().job(settlement.fence.job).await.unwrap();
        if let Some(record) = record {
            settlement.fence.claim = record.claim;
        }
        settlement
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("fault", &self.fault).finish_non_exhaustive()
    }
}

#[async_trait]
impl Subject for Faulty {
    fn store(&self) -> &dyn Store {
        self
    }

    fn inspect(&self) -> &dyn Inspect {
        self.subject.inspect()
    }

    fn operate(&self) -> &dyn Operate {
        self.subject.operate()
    }

    fn transactions(&self) -> &dyn Transactions {
        self
    }

    async fn advance(&self, span: Duration) {
        self.subject.advance(span).await;
    }

    async fn plant(&self, row: &RawRow) -> JobId {
        self.subject.plant(row).await
    }

    async fn outgrow(&self) {
        self.subject.outgrow().await;
    }

    async fn tamper(&self, job: JobId, tampering: &Tampering) {
        self.subject.tamper(job, tampering).await;
    }
}

#[async_trait]
impl Schedules for Faulty {
    async fn declare(&self, by: Option<WorkerId>, declarations: &[Declaration]) -> Result<()> {
        self.subject.store().declare(by, declarations).await
    }

    async fn undeclare(&self, name: &ScheduleName) -> Result<bool> {
        self.subject.store().undeclare(name).await
    }

    async fn schedules(&self) -> Result<ScheduleView> {
        self.subject.store().schedules().await
    }

    async fn advance(&self, step: &Step) -> Result<Advanced> {
        if self.fault != Fault::Outrun {
            return self.subject.store().advance(step).await;
        }
        let view = self.subject.store().schedules().await?;
        let mut step = step.clone();
        if let Some(now) = view.schedules.into_iter().find(|record| record.name == step.name) {
            (step.seen_text, step.seen_next_at) = (now.text, now.next_at);
        }
        self.subject.store().advance(&step).await
    }

    async fn ticks(&self, name: &ScheduleName) -> Result<Vec<Tick>> {
        self.subject.store().ticks(name).await
    }
}

#[async_trait]
impl Store for Faulty {
    fn id(&self) -> &StoreId {
        self.subject.store().id()
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        if self.fault != Fault::Unique {
            return self.subject.store().enqueue(jobs).await;
        }
        let mut enqueued = Vec::new();
        for job in jobs {
            let first = self.subject.store().enqueue(std::slice::from_ref(job)).await?[0];
            enqueued.push(match first {
                Enqueued::AlreadyThere(twin)
                    if self.state(twin).await == Some(State::Scheduled) =>
                {
                    let unbound = NewJob { unique_key: None, ..job.clone() };
                    self.subject.store().enqueue(&[unbound]).await?[0]
                }
                Enqueued::AlreadyThere(_) | Enqueued::Added(_) => first,
            });
        }
        Ok(enqueued)
    }

    async fn register(&self, worker: &NewWorker) -> Result<WorkerId> {
        self.subject.store().register(worker).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>> {
        let inner = self.subject.store().heartbeat().await?;
        Ok(Box::new(FaultyHeartbeat { inner, fault: self.fault }))
    }

    async fn routes(&self, queues: &[QueueName]) -> Result<Vec<ReadyRoute>> {
        self.subject.store().routes(queues).await
    }

    async fn claim(&self, claim: Claim<'_>) -> Result<Claimed> {
        self.subject.store().claim(claim).await
    }

    async fn settle(&self, by: &Author, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let mut written = Vec::new();
        for settlement in settlements {
            let settlement = match self.fault {
                Fault::Fence => self.unfenced(settlement).await,
                Fault::Sweep | Fault::Unique | Fault::Rollback | Fault::Outrun => {
                    settlement.clone()
                }
            };
            written.extend(self.subject.store().settle(by, &[settlement]).await?);
        }
        Ok(written)
    }

    async fn checkpoint(&self, saves: &[CheckpointSave]) -> Result<Vec<Saved>> {
        self.subject.store().checkpoint(saves).await
    }

    async fn note_progress(&self, notes: &[ProgressNote]) -> Result<Vec<bool>> {
        self.subject.store().note_progress(notes).await
    }

    async fn check(&self, fences: &[Fence]) -> Result<Vec<Standing>> {
        self.subject.store().check(fences).await
    }

    async fn reread(&self, fences: &[Fence]) -> Result<Vec<Row>> {
        self.subject.store().reread(fences).await
    }

    async fn promote(&self, limit: u32) -> Result<Promoted> {
        self.subject.store().promote(limit).await
    }

    async fn claim_within(&self, claim: Claim<'_>, most: u32) -> Result<Claimed> {
        self.subject.store().claim_within(claim, most).await
    }

    async fn expire(&self, limit: u32) -> Result<u32> {
        self.subject.store().expire(limit).await
    }

    async fn refused_routes(&self) -> Result<Vec<Route>> {
        self.subject.store().refused_routes().await
    }

    async fn strand(&self, strand: &Strand<'_>) -> Result<u32> {
        self.subject.store().strand(strand).await
    }

    async fn publish(&self, build: &BuildId, manifest: &str) -> Result<()> {
        self.subject.store().publish(build, manifest).await
    }

    async fn recall(&self, routes: &[Route], limit: u32) -> Result<u32> {
        self.subject.store().recall(routes, limit).await
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        self.subject.store().sweep(sweep).await
    }

    async fn take_duty(&self, duty: Duty, worker: WorkerId) -> Result<bool> {
        self.subject.store().take_duty(duty, worker).await
    }

    async fn give_back_duty(&self, duty: Duty, worker: WorkerId) -> Result<()> {
        self.subject.store().give_back_duty(duty, worker).await
    }

    async fn prune(&self, retention: Retention, limit: u32) -> Result<u32> {
        self.subject.store().prune(retention, limit).await
    }

    fn wake(&self) -> Box<dyn Wake> {
        self.subject.store().wake()
    }
}

#[derive(Debug)]
struct FaultyHeartbeat {
    inner: Box<dyn Heartbeat>,
    fault: Fault,
}

#[async_trait]
impl Heartbeat for FaultyHeartbeat {
    async fn renew(&mut self, worker: WorkerId, phase: Phase, within: Duration) -> Result<Renewed> {
        match self.fault {
            Fault::Sweep => Ok(Renewed::Renewed),
            Fault::Fence | Fault::Unique | Fault::Rollback | Fault::Outrun => {
                self.inner.renew(worker, phase, within).await
            }
        }
    }

    async fn close(
        &mut self,
        worker: WorkerId,
        by: &Author,
        leaving: &Leaving,
    ) -> Result<Vec<JobId>> {
        self.inner.close(worker, by, leaving).await
    }

    async fn held(&mut self, worker: WorkerId) -> Result<Vec<Held>> {
        self.inner.held(worker).await
    }
}

#[async_trait]
impl Transactions for Faulty {
    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let inner = self.subject.transactions().begin().await?;
        Ok(Box::new(FaultyTransaction { inner, fault: self.fault }))
    }
}

struct FaultyTransaction {
    inner: Box<dyn Transaction>,
    fault: Fault,
}

#[async_trait]
impl Transaction for FaultyTransaction {
    async fn enqueue(&mut self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        self.inner.enqueue(jobs).await
    }

    async fn checkpoint(&mut self, save: &CheckpointSave) -> Result<Standing> {
        self.inner.checkpoint(save).await
    }

    async fn done(&mut self, fence: Fence, notes: &Notes) -> Result<Standing> {
        self.inner.done(fence, notes).await
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.inner.commit().await
    }

    async fn rollback(self: Box<Self>) -> Result<()> {
        match self.fault {
            Fault::Rollback => self.inner.commit().await,
            Fault::Fence | Fault::Sweep | Fault::Unique | Fault::Outrun => {
                self.inner.rollback().await
            }
        }
    }
}
