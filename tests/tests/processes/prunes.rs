//! A prune of much beside workers that claim.

use std::time::Duration;

use jobs_runtime::store::Retention;
use rustix::process::Signal;
use tests::{Work, ledger, sized, until};

use crate::{BINARY, MakeSetup, STORES};

const LIMIT: Duration = Duration::from_mins(1);
/// How many jobs are deleted in one transaction.
const BATCH: u32 = 50;
/// Only these are deleted, so that what the worker runs meanwhile stays.
const CANCELLED: Retention =
    Retention { succeeded: Duration::MAX, cancelled: Duration::ZERO, dead: Duration::MAX };

#[tokio::test]
async fn a_prune_of_much_lets_claims_in_between_its_batches() {
    for store in STORES {
        prune_beside_claims(store).await;
    }
}

/// The worker has one slot, so each of its jobs is a claim. All of them run before the prune is
/// through, though it began first and begins its next batch at once: no claim waits for more than a
/// few batches, and no batch is larger than was asked.
async fn prune_beside_claims(store: MakeSetup) {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(BINARY, folder.path()).with("CONCURRENCY", &1);
    let (pruner, producer) = (setup.open().await, setup.open().await);
    let old: u32 = sized(30_000, 300_000);
    for _ in 0..old / 10_000 {
        let work = (0..10_000).map(|_| Work { millis: 0 });
        let added = producer.enqueue_all(work).queue("elsewhere").await.unwrap();
        let ids: Vec<_> = added.into_iter().map(jobs_runtime::Enqueued::id).collect();
        producer.operate().cancel(&ids).await.unwrap();
    }
    let worker = setup.start("one");
    let first = producer.enqueue(Work { millis: 0 }).await.unwrap().id();
    producer.wait(first).await.unwrap();

    let wanted: usize = sized(50, 500);
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let pruned = std::cell::Cell::new(0);
    let pruning = async {
        let mut begun = Some(begun);
        loop {
            let batch = pruner.prune(CANCELLED, BATCH).await.unwrap();
            assert!(batch <= BATCH, "{batch} jobs were deleted at once");
            pruned.set(pruned.get() + batch);
            if let Some(begun) = begun.take() {
                begun.send(()).expect("the claims wait for it");
            }
            if batch < BATCH {
                break;
            }
        }
    };
    let claiming = async {
        has_begun.await.unwrap();
        producer.enqueue_all((0..wanted).map(|_| Work { millis: 0 })).await.unwrap();
        let ended = || ledger::read(&setup.ledger).len();
        until("all run", LIMIT, async || ended() > wanted).await;
        pruned.get()
    };
    let ((), meanwhile) = tokio::join!(pruning, claiming);
    assert_eq!(pruned.get(), old, "all that was old is gone");
    assert!(meanwhile < old, "the claims waited for the end of the prune");
    worker.signal(Signal::TERM);
    assert!(worker.wait().success());
}
