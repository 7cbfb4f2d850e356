//! Duties, which one worker at a time has, and reports, which each leaves behind.

use super::super::{Drained, Duty, Leaving, Retention, WORKERS_KEPT, WorkerEnd, WorkerRecord};
use super::Subject;
use super::scene::{ALL, SECOND, Scene, job};
use crate::id::WorkerId;

impl Scene<'_> {
    async fn takes(&self, duty: Duty) -> bool {
        self.subject.store().take_duty(duty, self.worker).await.unwrap()
    }

    async fn gives_back(&self, duty: Duty) {
        self.subject.store().give_back_duty(duty, self.worker).await.unwrap();
    }

    async fn worker_record(&self) -> WorkerRecord {
        let workers = self.subject.inspect().workers().await.unwrap();
        workers.into_iter().find(|worker| worker.id == self.worker).unwrap()
    }
}

pub(super) async fn one_worker_at_a_time_has_a_duty(subject: &dyn Subject) {
    let (one, two) = (Scene::open(subject).await, Scene::open(subject).await);
    for duty in Duty::ALL {
        assert!(one.takes(duty).await);
        assert!(!two.takes(duty).await);
        assert!(one.takes(duty).await, "it has it already");
        two.gives_back(duty).await;
        assert!(!two.takes(duty).await, "it was not its own to give back");
    }
    one.gives_back(Duty::Schedule).await;
    assert!(two.takes(Duty::Schedule).await);
    assert!(!two.takes(Duty::Suspects).await, "each duty is apart");
}

pub(super) async fn a_duty_passes_on_when_its_worker_ends(subject: &dyn Subject) {
    let duty = Duty::Schedule;
    let closed = Scene::open(subject).await;
    assert!(closed.takes(duty).await);
    closed.close().await;
    assert!(!closed.takes(duty).await, "it has ended");
    let swept = closed.another().await;
    assert!(swept.takes(duty).await);
    swept.expire().await;
    assert!(!swept.takes(duty).await, "it was taken back");
    let leaving = swept.another().await;
    let run = leaving.run(&job("a")).await;
    assert!(leaving.takes(duty).await);
    let abandoned = vec![run.fence];
    leaving.leave(&Leaving { abandoned, gone_in: SECOND, ..Leaving::default() }).await;
    assert!(!leaving.takes(duty).await, "it leaves");
    let next = leaving.another().await;
    assert!(next.takes(duty).await);
    let unknown = Scene { worker: WorkerId(next.worker.0 + 1_000_000), ..next };
    assert!(!unknown.takes(duty).await);
    assert!(!unknown.takes(Duty::Suspects).await, "nobody has it, and it is nobody");
}

pub(super) async fn a_forgotten_worker_keeps_no_duty(subject: &dyn Subject) {
    let gone = Scene::open(subject).await;
    assert!(gone.takes(Duty::Schedule).await);
    gone.close().await;
    subject.advance(WORKERS_KEPT + SECOND).await;
    let next = gone.another().await;
    subject.store().prune(Retention::default(), ALL).await.unwrap();
    assert!(next.takes(Duty::Schedule).await);
    subject.store().prune(Retention::default(), ALL).await.unwrap();
    let workers = subject.inspect().workers().await.unwrap();
    assert_eq!(workers.iter().map(|worker| worker.id).collect::<Vec<_>>(), [next.worker]);
}

pub(super) async fn a_report_is_kept_with_its_worker(subject: &dyn Subject) {
    let scene = Scene::open(subject).await;
    let before = scene.worker_record().await;
    assert_eq!((before.drained, before.end()), (None, WorkerEnd::Open));
    scene.enqueue(&vec![job("a"); 3]).await;
    let runs = scene.claim(ALL).await;
    let drained =
        Drained { settled: 7, interrupted: 5, released: 3, abandoned: 1, took: SECOND * 9 };
    let abandoned = vec![runs[0].fence];
    scene.leave(&Leaving { abandoned, gone_in: SECOND, known: None, drained }).await;
    let kept = Some(Drained { interrupted: 7, ..drained });
    let after = scene.worker_record().await;
    assert_eq!((after.drained, after.end()), (kept, WorkerEnd::Drained));
    scene.sweep().await;
    subject.advance(SECOND * 2).await;
    scene.sweep().await;
    let swept = scene.worker_record().await;
    assert!(swept.is_taken_back && swept.ended_at.is_some());
    assert_eq!((swept.drained, swept.end()), (kept, WorkerEnd::Drained));
    scene.leave(&Leaving::default()).await;
    assert_eq!(scene.worker_record().await.drained, kept, "it leaves once");
}

pub(super) async fn a_sweep_notes_how_many_runs_came_back_by_expiry(subject: &dyn Subject) {
    let killed = Scene::open(subject).await;
    killed.enqueue(&vec![job("a"); 3]).await;
    killed.claim(2).await;
    killed.expire().await;
    let record = killed.worker_record().await;
    assert_eq!((record.reclaimed, record.end()), (2, WorkerEnd::TakenBack));
    let drained = killed.another().await;
    drained.claim(1).await;
    drained.close().await;
    let record = drained.worker_record().await;
    assert_eq!((record.reclaimed, record.end()), (0, WorkerEnd::Drained));
    let deploys = subject.inspect().deploys().await.unwrap();
    assert_eq!(deploys.len(), 1);
    let deploy = &deploys[0];
    assert_eq!((deploy.workers, deploy.drained, deploy.taken_back), (2, 1, 1));
    assert_eq!((deploy.reclaimed, deploy.interrupted), (2, 1));
    assert_eq!(deploy.share_by_expiry(), Some(2.0 / 3.0));
}
