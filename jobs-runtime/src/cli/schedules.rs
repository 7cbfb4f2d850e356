//! `jobs schedules`: what is enqueued by the clock.

mod answer;

use clap::{Args, Subcommand};

use self::answer::{Answer, Known};
use super::Context;
use super::exit::{Failure, Result};
use super::new_job::JobOptions;
use super::output::{Shown, consent, json, json_lines, print, say};
use super::visible::visible;
use super::when::second;
use crate::client::Jobs;
use crate::schedule::{declaration, next_tick};
use crate::{BuildId, CatchUp, MAX_CATCH_UP, Schedule, ScheduleStatus};

#[derive(Debug, Clone, Args)]
#[command(
    subcommand_value_name = "ACTION",
    subcommand_help_heading = "Actions",
    after_help = "Examples:\n  jobs schedules\n  jobs schedules ticks billing.close\n  \
                  jobs schedules add report.weekly '0 6 * * mon Europe/Berlin' report.make \
                  '{\"week\": true}' --payload-version 1.0.0\n  \
                  jobs schedules pause billing.close --reason 'the bank is away'"
)]
pub struct Options {
    /// What to do. Default: list the schedules, with their next and latest tick and who declares them.
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Declare a schedule by hand; it goes before what builds declare under its name.
    Add(Add),
    /// Take back what was declared by hand.
    Remove(Remove),
    /// Stop the ticks of a schedule, whoever declares it.
    Pause(Pause),
    /// Let a paused schedule tick again, first at its next instant.
    Resume(Named),
    /// List the latest ticks of a schedule and the jobs that they enqueued, newest first.
    Ticks(Named),
}

#[derive(Debug, Clone, Args)]
struct Named {
    /// The schedule.
    name: String,
}

#[derive(Debug, Clone, Args)]
struct Add {
    /// The schedule: what is declared under one name is one schedule.
    name: String,
    /// When it ticks: a cron expression with an IANA time zone, `0 3 * * * Europe/Berlin`, or an
    /// interval, `every 15m`.
    when: String,
    #[command(flatten)]
    job: JobOptions,
    /// What is done about ticks that no worker was there for: `none`, `latest`, or how many of the
    /// latest are made up for.
    #[arg(long, default_value = "latest", value_parser = catch_up)]
    catch_up: CatchUp,
}

#[derive(Debug, Clone, Args)]
struct Remove {
    /// The schedule.
    name: String,
    /// Without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Args)]
struct Pause {
    /// The schedule.
    name: String,
    /// Why, for whoever finds it paused.
    #[arg(long)]
    reason: String,
    /// Who pauses it. Default: the name that you are logged in with.
    #[arg(long, env = "USER")]
    by: String,
}

impl Options {
    pub(super) async fn run(&self, cx: &Context) -> Result<()> {
        match &self.action {
            None => list(cx).await,
            Some(Action::Add(add)) => add.run(cx).await,
            Some(Action::Remove(remove)) => remove.run(cx).await,
            Some(Action::Pause(pause)) => pause.run(cx).await,
            Some(Action::Resume(named)) => named.resume(cx).await,
            Some(Action::Ticks(named)) => named.ticks(cx).await,
        }
    }
}

async fn list(cx: &Context) -> Result<()> {
    let jobs = cx.open().await?;
    let schedules = jobs.schedules().await?;
    let known = Known::of(&jobs.inspect().workers().await?);
    if cx.output.is_json {
        return json_lines(schedules.iter().map(|schedule| Answer::of(schedule, &known)));
    }
    let header = ["NAME", "WHEN", "ENQUEUES", "NEXT", "LATEST", "DECLARED BY", "PAUSED"];
    let rows = schedules.iter().map(|schedule| answer::row(schedule, &known)).collect();
    cx.output.table(&header, rows)?;
    for schedule in &schedules {
        if let Some(why) = &schedule.problem {
            say(&format!("jobs: what counts of {} can't be read here: {why}", schedule.name));
        }
    }
    if schedules.is_empty() {
        say("jobs: nobody declares a schedule; `jobs schedules add --help` tells how to");
    } else if !known.has_live() {
        say("jobs: no worker is live, so nothing ticks; see `jobs workers --all`");
    }
    Ok(())
}

impl Add {
    async fn run(&self, cx: &Context) -> Result<()> {
        let job = self.job.job(&cx.application)?;
        let schedule =
            Schedule::of_job(self.name.as_str(), self.when.as_str(), job).catch_up(self.catch_up);
        // What is wrong with it is told before the database is asked.
        declaration(&schedule, &BuildId::default()).map_err(Failure::wrong)?;
        let jobs = cx.open().await?;
        jobs.declare(&schedule).await?;
        let added = found(&jobs, &self.name).await?;
        let next_at = next_tick(&self.when, jobs.clock().now());
        if cx.output.is_json {
            return json(&answer::Added::of(&added, next_at));
        }
        if let Some(pause) = &added.paused {
            say(&format!(
                "jobs: it is paused by {} ({}); `jobs schedules resume` lets it tick",
                pause.by, pause.reason
            ));
        }
        if added.declared.len() > 1 {
            say("jobs: it goes before what builds declare under this name");
        }
        let next_at = next_at.map_or_else(|| "never".to_owned(), second);
        let ticks = if added.paused.is_some() { "would tick" } else { "ticks" };
        print(&format!("{} {ticks} next at {next_at}\n", visible(&self.name)))
    }
}

impl Remove {
    async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let schedule = found(&jobs, &self.name).await?;
        let by_hand = schedule.declared.iter().find(|declared| declared.worker.is_none());
        let Some(by_hand) = by_hand else {
            return Err(Failure::finding(format!(
                "{} is declared by builds alone; to stop it, `jobs schedules pause`",
                schedule.name
            )));
        };
        let when = by_hand.when.as_deref().unwrap_or("unreadable here");
        let kind = schedule.job.as_ref().map_or("unreadable here", |job| job.kind.as_str());
        let name = &schedule.name;
        consent(&format!("Remove what was declared by hand of {name}: {when}, {kind}?"), self.yes)?;
        if !jobs.undeclare(&self.name).await? {
            return Err(Failure::finding(format!("somebody else has removed {name} already")));
        }
        match schedule.declared.len() {
            1 => say(&format!("jobs: {name} ticks no more; jobs that it enqueued stay")),
            _ => say(&format!("jobs: what builds declare of {name} counts again")),
        }
        Ok(())
    }
}

impl Pause {
    async fn run(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let before = found(&jobs, &self.name).await?;
        if let Some(pause) = &before.paused {
            return Err(Failure::finding(format!(
                "{} has been paused already, by {} at {}: {}",
                before.name,
                pause.by,
                second(pause.at),
                pause.reason
            )));
        }
        jobs.pause_schedule(&self.name, &self.by, &self.reason).await?;
        say(&format!(
            "jobs: {} ticks no more; `jobs schedules resume` lets it, from its next instant on",
            before.name
        ));
        Ok(())
    }
}

impl Named {
    async fn resume(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        let name = found(&jobs, &self.name).await?.name;
        if jobs.resume_schedule(&self.name).await? {
            say(&format!("jobs: {name} ticks again, from its next instant on"));
            return Ok(());
        }
        Err(Failure::finding(format!("{name} is not paused; see `jobs schedules`")))
    }

    async fn ticks(&self, cx: &Context) -> Result<()> {
        let jobs = cx.open().await?;
        found(&jobs, &self.name).await?;
        let ticks = jobs.ticks(&self.name).await?;
        if cx.output.is_json {
            return json_lines(ticks.iter().map(answer::Ticked::of));
        }
        let row = |tick: &crate::store::Tick| {
            vec![Shown::new(second(tick.at)), Shown::new(tick.job.to_string())]
        };
        cx.output.table(&["TICK", "JOB"], ticks.iter().map(row).collect())
    }
}

/// The schedule of a name.
async fn found(jobs: &Jobs, name: &str) -> Result<ScheduleStatus> {
    let schedules = jobs.schedules().await?;
    let found = schedules.into_iter().find(|schedule| schedule.name.as_str() == name);
    found.ok_or_else(|| {
        Failure::finding(format!("there is no schedule {name}; see `jobs schedules`"))
    })
}

fn catch_up(text: &str) -> Result<CatchUp, String> {
    match text {
        "none" => Ok(CatchUp::None),
        "latest" => Ok(CatchUp::Latest),
        _ => match text.parse() {
            Ok(most @ 1..=MAX_CATCH_UP) => Ok(CatchUp::All(most)),
            _ => Err(format!("write `none`, `latest` or a number from 1 to {MAX_CATCH_UP}")),
        },
    }
}
