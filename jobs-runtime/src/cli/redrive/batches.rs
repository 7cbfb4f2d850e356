//! Bringing jobs back, batch by batch.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::cli::exit::Result;
use crate::cli::output::{Output, facts, json};
use crate::store::{Redrive, Redriven};
use crate::{JobId, Jobs};

/// How jobs are brought back.
#[derive(Debug)]
pub(super) struct Batches {
    pub(super) redrive: Redrive,
    pub(super) size: usize,
    pub(super) pace: Pace,
}

/// How long there is a rest behind a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// Nine times what the batch took: claims and settlements keep nine tenths of the database's time.
    Tenth,
    /// This long, whatever the batch took.
    Rest(Duration),
}

impl Pace {
    fn rest(self, took: Duration) -> Duration {
        match self {
            Self::Tenth => took * 9,
            Self::Rest(rest) => rest,
        }
    }
}

/// What became of the jobs.
#[derive(Debug, Default, Serialize)]
pub(super) struct Done {
    /// They are ready.
    redriven: u64,
    /// Someone else had brought them back or they were pruned.
    moved: u64,
    /// They had run and ended again since they were listed.
    ended_later: u64,
    /// A waiting job with their unique key stands for them.
    pub(super) twin_waits: u64,
    /// The command was ended before their turn came.
    pub(super) left: usize,
}

impl Batches {
    pub(super) async fn run(&self, jobs: &Jobs, ids: &[JobId]) -> Result<Done> {
        let bar = bar(ids.len());
        let mut done = Done { left: ids.len(), ..Done::default() };
        let mut ended = std::pin::pin!(tokio::signal::ctrl_c());
        // Taken over now: within the first batch too, Ctrl-C ends it behind that.
        let is_ended = futures_util::poll!(&mut ended).is_ready();
        for batch in ids.chunks(self.size) {
            let begun = jobs.clock().elapsed();
            for answer in jobs.operate().redrive(batch, self.redrive).await? {
                done.count(answer);
            }
            done.left -= batch.len();
            bar.inc(u64::try_from(batch.len()).unwrap_or(u64::MAX));
            if done.left == 0 || is_ended {
                break;
            }
            let took = jobs.clock().elapsed().saturating_sub(begun);
            let rest = tokio::time::sleep(self.pace.rest(took));
            tokio::select! {
                biased;
                _ = &mut ended => break,
                () = rest => {}
            }
        }
        bar.finish_and_clear();
        Ok(done)
    }
}

impl Done {
    fn count(&mut self, answer: Redriven) {
        let count = match answer {
            Redriven::Ready => &mut self.redriven,
            Redriven::EndedLater => &mut self.ended_later,
            Redriven::TwinWaits(_) => &mut self.twin_waits,
            Redriven::Not(_) | Redriven::Missing => &mut self.moved,
        };
        *count += 1;
    }

    pub(super) fn tell(&self, output: Output) -> Result<()> {
        if output.is_json {
            return json(self);
        }
        let mut told = vec![("Brought back", self.redriven.to_string())];
        let more = [
            ("Moved by others meanwhile", self.moved),
            ("Ran and ended again meanwhile", self.ended_later),
            ("A job with their unique key waits", self.twin_waits),
            ("Left", u64::try_from(self.left).unwrap_or(u64::MAX)),
        ];
        told.extend(more.iter().filter(|(_, n)| *n > 0).map(|(name, n)| (*name, n.to_string())));
        facts(&told)
    }
}

/// A bar on standard error, where that is a terminal.
fn bar(jobs: usize) -> ProgressBar {
    const STYLE: &str = "{bar:40} {pos}/{len} jobs, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(STYLE).expect("the template is well formed");
    ProgressBar::new(u64::try_from(jobs).unwrap_or(u64::MAX)).with_style(style)
}
