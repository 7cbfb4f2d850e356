//! The model test, tried on the model itself: it agrees with itself, it gets everywhere, and a store
//! with a planted fault is told apart.
#![cfg(feature = "conformance")]

mod faulty;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_executor::block_on;
use jobs_core::State;
use jobs_core::store::Filter;
use jobs_core::store::conformance::{MemorySubject, Subject, model};

use self::faulty::{Fault, Faulty};

const STEPS: usize = 200;

#[test]
fn the_memory_store_agrees_with_itself() {
    for seed in model::seeds(200) {
        let (subject, model) = (MemorySubject::new(seed), MemorySubject::new(!seed));
        block_on(model::compare(seed, STEPS, &subject, &model));
    }
}

#[test]
fn random_lives_get_everywhere() {
    let mut states = BTreeSet::new();
    let mut classes = BTreeSet::new();
    for seed in 1..=100 {
        let subject = MemorySubject::new(seed);
        block_on(async {
            model::compare(seed, STEPS, &subject, &MemorySubject::new(!seed)).await;
            let inspect = subject.inspect();
            for job in inspect.jobs(&Filter::default(), u32::MAX).await.unwrap() {
                states.insert(job.state);
                classes.extend(job.error_class);
                let events = inspect.events(job.id).await.unwrap();
                classes.extend(events.into_iter().map(|event| event.class));
            }
        });
    }
    assert_eq!(states, State::ALL.into());
    let expected = [
        "cancelled",
        "crash",
        "crash_loop",
        "error",
        "expired",
        "given_up",
        "infrastructure",
        "interrupted",
        "newer",
        "redriven",
        "rescheduled",
        "run_now",
        "stopped",
        "superseded",
    ];
    assert_eq!(classes, expected.map(str::to_owned).into());
}

/// How the model test tells of a fault, and after how many lives.
fn found(fault: Fault) -> (u64, String) {
    for seed in 1..=20 {
        let compared = catch_unwind(AssertUnwindSafe(|| {
            let (subject, model) = (Faulty::new(fault, seed), MemorySubject::new(!seed));
            block_on(model::compare(seed, STEPS, &subject, &model));
        }));
        if let Err(panic) = compared {
            return (seed, panic.downcast_ref::<String>().cloned().unwrap_or_default());
        }
    }
    panic!("no life out of 20 met the fault {fault:?}");
}

#[test]
fn a_planted_fault_in_the_fence_is_found() {
    let (seed, told) = found(Fault::Fence);
    assert!(told.contains("LeaseLost"), "{told}");
    assert!(told.contains(&format!("JOBS_SEED={seed} ")), "{told}");
}

#[test]
fn a_planted_fault_in_the_sweep_is_found() {
    let (_, told) = found(Fault::Sweep);
    assert!(told.contains("Swept"), "{told}");
}

#[test]
fn a_planted_fault_in_the_unique_rule_is_found() {
    let (_, told) = found(Fault::Unique);
    assert!(told.contains("AlreadyThere"), "{told}");
}

#[test]
fn a_planted_fault_in_the_rollback_is_found() {
    let (_, told) = found(Fault::Rollback);
    assert!(told.contains("the store differs from the model"), "{told}");
}

#[test]
fn a_planted_fault_in_the_steps_of_schedules_is_found() {
    let (_, told) = found(Fault::Outrun);
    assert!(told.contains("Outrun"), "{told}");
}

#[test]
fn a_life_may_move_between_threads() {
    const fn moves<T: Send>(_: &T) {}
    let (subject, model) = (MemorySubject::new(1), MemorySubject::new(2));
    let life = model::compare(1, STEPS, &subject, &model);
    moves(&life);
    block_on(life);
}
