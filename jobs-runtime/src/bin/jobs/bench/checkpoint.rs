//! What a checkpoint costs a run: written each time, or put off.

use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::{Handlers, State};
use serde::{Deserialize, Serialize};

use super::Result;
use super::app::elapsed;
use super::place::Place;
use super::scenario::{Figures, Side};

/// As large as a cursor with a few totals is.
#[derive(Debug, Serialize, Deserialize, Checkpoint)]
#[checkpoint(version = "1.0.0", crate = "jobs_runtime")]
struct At {
    last_id: u64,
    counted: u64,
    bytes: u64,
}

impl At {
    fn step(step: u32) -> Self {
        let step = u64::from(step);
        Self { last_id: 1_000_000 + step, counted: step, bytes: step * 4_096 }
    }
}

/// Saves so many checkpoints, and leaves how long that took.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "bench.save", version = "1.0.0", checkpoint = At, crate = "jobs_runtime")]
struct Save {
    checkpoints: u32,
}

/// As [`Save`], with most of them put off.
#[derive(Debug, Serialize, Deserialize, Job)]
#[job(kind = "bench.save_seldom", version = "1.0.0", checkpoint = At, crate = "jobs_runtime")]
#[job(checkpoint_every = "5s")]
struct SaveSeldom {
    checkpoints: u32,
}

async fn save_all(checkpoints: u32, cx: JobContext<(), At>) -> std::result::Result<(), JobError> {
    // Connections and statements are made before.
    cx.checkpoint(&At::step(0)).await?;
    let begun = elapsed();
    for step in 1..=checkpoints {
        cx.checkpoint(&At::step(step)).await?;
    }
    cx.set_result(&elapsed().saturating_sub(begun))
}

async fn save(job: Save, cx: JobContext<(), At>) -> std::result::Result<(), JobError> {
    save_all(job.checkpoints, cx).await
}

async fn save_seldom(job: SaveSeldom, cx: JobContext<(), At>) -> std::result::Result<(), JobError> {
    save_all(job.checkpoints, cx).await
}

fn handlers() -> Result<Handlers<()>> {
    Ok(Registry::new().handle(save).handle(save_seldom).build()?)
}

/// Checkpoints of one run a second; on the floor the same row, written by hand.
pub(super) async fn durable(side: Side, place: &Place, checkpoints: u32) -> Result<Figures> {
    let took = match side {
        Side::Framework => took_in_a_run(place, Save { checkpoints }).await?,
        Side::Floor => {
            let mut floor = place.floor().await?;
            floor.upsert(&serde_json::to_string(&At::step(0))?).await?;
            let begun = elapsed();
            for step in 1..=checkpoints {
                floor.upsert(&serde_json::to_string(&At::step(step))?).await?;
            }
            elapsed().saturating_sub(begun)
        }
    };
    Ok(Figures::per_s(f64::from(checkpoints) / took.as_secs_f64()))
}

/// What a checkpoint costs that is put off, in nanoseconds.
pub(super) async fn put_off(place: &Place, checkpoints: u32) -> Result<Figures> {
    let took = took_in_a_run(place, SaveSeldom { checkpoints }).await?;
    let mut figures = Figures::default();
    figures.add("ns_per_call", took.as_secs_f64() * 1e9 / f64::from(checkpoints));
    Ok(figures)
}

async fn took_in_a_run(place: &Place, job: impl Job) -> Result<Duration> {
    let jobs = Jobs::open(place.url()).await?;
    let id = jobs.enqueue(job).await?.id();
    let mut record = None;
    let worker = Worker::new(&jobs, handlers()?, ());
    worker.run_until(async { record = Some(jobs.wait(id).await) }).await?;
    let record = record.ok_or("the worker stopped by itself")??;
    match (record.state, record.result_as()?) {
        (State::Succeeded, Some(took)) => Ok(took),
        (state, _) => Err(format!("the run ended {state}: {:?}", record.error).into()),
    }
}
