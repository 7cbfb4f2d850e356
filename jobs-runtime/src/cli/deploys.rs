//! `jobs deploys`: did each deploy move work on, or leave it to expire?

use clap::Args;
use serde::Serialize;

use super::Context;
use super::exit::Result;
use super::output::{Shown, json_lines};
use super::when::{length, second};
use crate::store::Deploy;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "WORKERS is how many registered, OPEN how many still work; DRAINED left by \
    themselves, KILLED were taken back when their lease had expired. SETTLED, GIVEN BACK and ABANDONED \
    tell what the drains did with their runs, EXPIRED which came back only by an expired lease; BY \
    EXPIRY is their share, 0% after a deploy that moved all work on."
)]
pub struct Options {}

#[derive(Serialize)]
struct Answer<'a> {
    build: &'a str,
    started_at: String,
    workers: u64,
    open: u64,
    drained: u64,
    taken_back: u64,
    settled: u64,
    interrupted: u64,
    released: u64,
    abandoned: u64,
    reclaimed: u64,
    share_by_expiry: Option<f64>,
    longest_drain_ms: u128,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        let deploys = cx.open().await?.inspect().deploys().await?;
        if cx.output.is_json {
            return json_lines(deploys.iter().map(answer));
        }
        let header = [
            "BUILD",
            "SINCE",
            "WORKERS",
            "OPEN",
            "DRAINED",
            "KILLED",
            "SETTLED",
            "GIVEN BACK",
            "ABANDONED",
            "EXPIRED",
            "BY EXPIRY",
            "LONGEST DRAIN",
        ];
        cx.output.table(&header, deploys.iter().map(row).collect())
    }
}

fn answer(deploy: &Deploy) -> Answer<'_> {
    Answer {
        build: &deploy.build,
        started_at: deploy.started_at.to_string(),
        workers: deploy.workers,
        open: deploy.open,
        drained: deploy.drained,
        taken_back: deploy.taken_back,
        settled: deploy.settled,
        interrupted: deploy.interrupted,
        released: deploy.released,
        abandoned: deploy.abandoned,
        reclaimed: deploy.reclaimed,
        share_by_expiry: deploy.share_by_expiry(),
        longest_drain_ms: deploy.longest_drain.as_millis(),
    }
}

fn row(deploy: &Deploy) -> Vec<Shown> {
    let share = deploy.share_by_expiry().map(|share| format!("{:.1}%", share * 100.0));
    vec![
        Shown::new(deploy.build.as_str()),
        Shown::new(second(deploy.started_at)),
        Shown::new(deploy.workers.to_string()),
        Shown::new(deploy.open.to_string()),
        Shown::new(deploy.drained.to_string()),
        Shown::alarming(deploy.taken_back),
        Shown::new(deploy.settled.to_string()),
        Shown::new(deploy.interrupted.saturating_add(deploy.released).to_string()),
        Shown::alarming(deploy.abandoned),
        Shown::alarming(deploy.reclaimed),
        Shown::maybe(share),
        Shown::new(length(deploy.longest_drain)),
    ]
}
