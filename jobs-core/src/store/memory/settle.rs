//! What is written about runs: settlements, checkpoints, taking back; and what the row says.

use super::super::{Author, CANCELLED, CheckpointSave, Row, SUPERSEDED, Settled, Standing};
use super::tables::{Tables, advance, due_at, event, fence, turn};
use crate::clock::Timestamp;
use crate::id::{Fence, JobId};
use crate::outcome::Ending;
use crate::random::{Random, SeededRandom};
use crate::record::{EventKind, JobRecord, NewEvent, Notes, ProgressNote, StoredCheckpoint};
use crate::retry::Ladder;
use crate::state::State;
use crate::transition::{Run, Settlement, transition};

/// What keeps a settlement's state from being written as it is.
enum Instead {
    Nothing,
    CancelRequest,
    Twin(JobId),
}

impl Tables {
    pub(super) fn settle(
        &mut self,
        now: Timestamp,
        by: &Author,
        settlement: &Settlement,
    ) -> Settled {
        if self.running(settlement.fence).is_none() {
            return Settled::LeaseLost;
        }
        Settled::Applied(self.write(now, Some(by), settlement))
    }

    /// Takes a run from its worker: its claim number advances, so that nothing it still writes can
    /// pass the fence.
    pub(super) fn take_back(
        &mut self,
        now: Timestamp,
        by: &Author,
        id: JobId,
        (ending, draw): (&Ending, u64),
        tell: impl FnOnce(Settlement) -> Settlement,
    ) -> State {
        let job = &self.jobs[&id];
        let own_draw = SeededRandom::new(draw ^ id.0.unsigned_abs()).draw();
        let settlement = transition(&run(job), ending, &Ladder::default(), own_draw);
        let state = self.write(now, Some(by), &tell(settlement));
        if let Some(job) = self.jobs.get_mut(&id) {
            job.claim = advance(job.claim);
        }
        state
    }

    /// A run's success within its worker's transaction; there is no event to be its author.
    pub(super) fn done(&mut self, now: Timestamp, fence: Fence, notes: &Notes) -> Standing {
        let standing = self.standing(fence);
        if let Some(job) = self.running(fence) {
            let settlement = transition(&run(job), &Ending::Done, &Ladder::default(), 0);
            self.write(now, None, &Settlement { notes: notes.clone(), ..settlement });
        }
        standing
    }

    /// Writes a settlement whose fence holds.
    fn write(&mut self, now: Timestamp, by: Option<&Author>, settlement: &Settlement) -> State {
        let fence = settlement.fence;
        let instead = self.instead(settlement);
        self.cancels.remove(&fence);
        let state = match instead {
            Instead::Nothing => settlement.state,
            Instead::CancelRequest | Instead::Twin(_) => State::Cancelled,
        };
        let job = self.running(fence).expect("the caller has checked the fence");
        apply(job, now, state, settlement);
        let extra = instead.event();
        if let Instead::Twin(_) = instead {
            job.error_class = extra.as_ref().map(|event| event.class.clone());
            job.error = extra.as_ref().map(|event| event.text.clone());
        }
        for event in settlement.event.clone().into_iter().chain(extra) {
            self.record(now, fence, by, event);
        }
        state
    }

    /// A cancel request goes before a waiting twin; neither undoes what is over.
    fn instead(&self, settlement: &Settlement) -> Instead {
        let is_over = matches!(settlement.state, State::Succeeded | State::Dead);
        if self.cancels.contains(&settlement.fence) && !is_over {
            return Instead::CancelRequest;
        }
        let job = &self.jobs[&settlement.fence.job];
        let twin = self.twin(Some(job.id), &job.kind, job.unique_key.as_deref());
        match twin {
            Some(twin) if settlement.state.is_waiting() => Instead::Twin(twin),
            Some(_) | None => Instead::Nothing,
        }
    }

    pub(super) fn checkpoint(&mut self, save: &CheckpointSave) -> Standing {
        if let Some(job) = self.running(save.fence) {
            move_checkpoint(job, save);
        }
        self.standing(save.fence)
    }

    /// Answers whether the run was there to be written about.
    pub(super) fn note_progress(&mut self, note: &ProgressNote) -> bool {
        let Some(job) = self.running(note.fence) else {
            return false;
        };
        job.progress = Some(note.text.clone());
        true
    }

    pub(super) fn standing(&mut self, fence: Fence) -> Standing {
        if self.running(fence).is_none() {
            Standing::Lost
        } else if self.cancels.contains(&fence) {
            Standing::CancelRequested
        } else {
            Standing::Held
        }
    }

    pub(super) fn reread(&self, fence: Fence) -> Row {
        let Some(job) = self.jobs.get(&fence.job) else {
            return Row::Missing;
        };
        if job.claim < fence.claim {
            Row::Missing
        } else if job.claim > fence.claim {
            Row::Taken(job.claim)
        } else if job.state == State::Running {
            Row::Running(job.counters)
        } else {
            Row::Settled(job.state)
        }
    }
}

impl Instead {
    fn event(&self) -> Option<NewEvent> {
        match self {
            Self::Nothing => None,
            Self::CancelRequest => {
                let text = "cancelled while it ran".to_owned();
                Some(event(EventKind::Cancelled, CANCELLED, text))
            }
            Self::Twin(twin) => {
                let text = format!("job {twin} waits with the same unique key");
                Some(event(EventKind::Cancelled, SUPERSEDED, text))
            }
        }
    }
}

fn run(job: &JobRecord) -> Run {
    Run {
        fence: fence(job),
        counters: job.counters,
        budget: job.budget,
        refused: job.refused.clone(),
    }
}

fn apply(job: &mut JobRecord, now: Timestamp, state: State, settlement: &Settlement) {
    turn(job, state);
    job.worker = job.worker.filter(|_| state == State::Succeeded);
    job.counters = settlement.counters;
    job.refused.clone_from(&settlement.refused);
    if let Some(note) = &settlement.error {
        job.error_class = Some(note.class.clone());
        job.error = Some(note.text.clone());
    }
    let Notes { progress, result } = settlement.notes.clone();
    job.progress = progress.or(job.progress.take());
    job.result = result.or(job.result.take());
    if state.is_finished() {
        job.finished_at = Some(now);
    } else {
        job.due_at = due_at(settlement.due, job.due_at, now);
    }
}

fn move_checkpoint(job: &mut JobRecord, save: &CheckpointSave) {
    let number = job.checkpoint.as_ref().map_or(0, |stored| stored.number);
    let stored = StoredCheckpoint {
        version: save.version.to_string(),
        min_reader: Some(save.min_reader.to_string()),
        text: save.text.clone(),
        number,
    };
    if job.checkpoint.as_ref() == Some(&stored) {
        return;
    }
    job.checkpoint = Some(StoredCheckpoint { number: number.saturating_add(1), ..stored });
    job.counters.interruptions = 0;
    job.counters.crashes = 0;
    if !save.keeps_failures {
        job.counters.failures = 0;
    }
}
