//! Closing: a worker that leaves gives back what it holds, but for the runs that it abandons.

use super::super::{Author, Claim, Claimed, Leaving, Renewed, Swept};
use super::Subject;
use super::scene::{SECOND, Scene, build, ids, job, moved};
use crate::id::{Fence, WorkerId};
use crate::outcome::{Ending, Interruption};
use crate::record::{Counters, EventKind};
use crate::state::State;

pub(super) async fn closing_gives_back_as_interruptions(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let other = scene.another().await;
    scene.enqueue(&vec![job("a"); 3]).await;
    let runs = scene.claim(2).await;
    let kept = other.take().await;
    assert_eq!(scene.close().await, ids(&runs));
    for run in &runs {
        let record = scene.record(run.fence.job).await;
        let counters = Counters { interruptions: 1, ..Counters::default() };
        assert_eq!((record.state, record.worker), (State::Ready, None));
        assert_eq!((record.claim, record.counters), (moved(run.fence, 1).claim, counters));
        assert_eq!(record.due_at, run.due_at);
        let event = scene.events(run.fence.job).await.remove(0);
        let class = Interruption::GivenUp.class();
        assert_eq!((event.kind, event.class.as_str()), (EventKind::Interrupted, class));
        assert_eq!((event.claim, event.worker), (run.fence.claim, Some(scene.worker)));
    }
    other.end_as(&kept, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn what_a_leaving_worker_does_not_know_of_goes_back_as_unstarted(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    scene.enqueue(&vec![job("a"); 2]).await;
    let runs = scene.claim(2).await;
    let leaving = Leaving { known: Some(vec![runs[0].fence]), ..Leaving::default() };
    assert_eq!(scene.leave(&leaving).await, ids(&runs));
    for (run, interruptions) in runs.iter().zip([1, 0]) {
        let record = scene.record(run.fence.job).await;
        let counters = Counters { interruptions, ..Counters::default() };
        assert_eq!((record.state, record.counters), (State::Ready, counters));
        assert_eq!(record.claim, moved(run.fence, 1).claim);
        assert_eq!(scene.events(run.fence.job).await.len(), interruptions as usize);
    }
    let report = subject.inspect().workers().await.unwrap()[0].drained.unwrap();
    assert_eq!((report.interrupted, report.released), (1, 1));
}

pub(super) async fn closing_again_gives_nothing_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.run(&job("a")).await;
    assert_eq!(scene.close().await.len(), 1);
    let next = scene.another().await;
    let run = next.take().await;
    assert_eq!(scene.close().await, []);
    assert_eq!(scene.sweep().await, Swept::default());
    next.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn closing_a_worker_taken_back_gives_nothing_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    scene.run(&job("a")).await;
    scene.expire().await;
    assert_eq!(scene.close().await, []);
}

pub(super) async fn closing_an_unknown_worker_gives_nothing_back(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    let by = Author { worker: None, build: build() };
    let unknown = WorkerId(scene.worker.0 + 1_000_000);
    let mut heartbeat = subject.store().heartbeat().await.unwrap();
    assert_eq!(heartbeat.close(unknown, &by, &Leaving::default()).await.unwrap(), []);
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn an_abandoned_run_stays_claimed_until_its_process_is_gone(
    subject: &dyn Subject,
) {
    let scene = Scene::open(subject).await;
    let kept = scene.run(&job("a")).await;
    let left = scene.run(&job("b")).await;
    let leaving = leaving(vec![kept.fence]);
    assert_eq!(scene.leave(&leaving).await, [left.fence.job]);
    assert_eq!(scene.state(kept.fence.job).await, State::Running);
    assert_eq!(scene.leave(&leaving).await, [], "it leaves once");
    assert_eq!(scene.renew().await, Renewed::Ended, "it can't stay");
    scene.sweep().await;
    subject.advance(SECOND * 2).await;
    let swept = scene.sweep().await;
    assert_eq!(swept.jobs, [(kept.fence.job, State::Ready)]);
    let record = scene.record(kept.fence.job).await;
    assert_eq!((record.counters.interruptions, record.counters.crashes), (1, 0));
}

pub(super) async fn an_abandoned_run_may_still_settle(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.leave(&leaving(vec![run.fence])).await;
    scene.end_as(&run, &Ending::Done, State::Succeeded).await;
}

pub(super) async fn a_worker_that_leaves_claims_nothing_more(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    scene.leave(&leaving(vec![run.fence])).await;
    scene.enqueue(&[job("a")]).await;
    let heads = scene.heads(&["default"]).await;
    let claim = Claim { worker: scene.worker, heads: &heads, limit: 1 };
    assert_eq!(subject.store().claim(claim).await.unwrap(), Claimed::WorkerEnded);
}

pub(super) async fn a_cancelled_run_is_not_brought_back_by_closing(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let run = scene.run(&job("a")).await;
    subject.operate().cancel(&[run.fence.job]).await.unwrap();
    assert_eq!(scene.close().await, [run.fence.job]);
    assert_eq!(scene.state(run.fence.job).await, State::Cancelled);
}

/// A worker that leaves at once, and runs that it abandons for a second.
fn leaving(abandoned: Vec<Fence>) -> Leaving {
    Leaving { abandoned, gone_in: SECOND, ..Leaving::default() }
}
