//! How long a suspect waits for workers that are always full: with the times of the default lease in
//! virtual time over the memory store, and in real time over SQLite, where a small test's lease is short.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobs_runtime::prelude::*;
use jobs_runtime::store::memory::MemoryStore;
use jobs_runtime::{Clock, Lease, ManualClock, SystemClock, Timestamp};

use crate::support::{Act, Fresh, Running, act, open_sqlite, sized};
use crate::suspects::suspect;

const STEP: Duration = Duration::from_millis(100);
const SLOTS: usize = 4;

/// A store, and the clock that its workers and the test go by.
struct Stage {
    jobs: Jobs,
    clock: Arc<dyn Clock>,
    /// Where time passes by the test's word.
    manual: Option<Arc<ManualClock>>,
    /// The lease of the workers.
    lease: Duration,
    /// The lease that the waits are those of.
    rule: Lease,
    _file: Option<Fresh>,
}

impl Stage {
    fn in_virtual_time() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        let store = MemoryStore::new(clock.clone(), 7);
        let jobs = Jobs::builder().clock(clock.clone()).over(store).unwrap();
        Self {
            jobs,
            clock: clock.clone(),
            manual: Some(clock),
            // It outlives the test: the heartbeat has a thread of its own, and real time.
            lease: Lease::LONGEST,
            rule: Lease::default(),
            _file: None,
        }
    }

    async fn in_real_time() -> Self {
        let file = open_sqlite().await;
        let lease = sized(Duration::from_millis(1_500), Lease::default().length());
        Self {
            jobs: file.clone(),
            clock: Arc::new(SystemClock),
            manual: None,
            lease,
            rule: Lease::new(lease).unwrap(),
            _file: Some(file),
        }
    }

    /// Lets time pass, for timers and for the clock alike, until something holds.
    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let ends_at = self.clock.elapsed() + self.rule.beside_after() * 2;
        while !holds() {
            assert!(self.clock.elapsed() < ends_at, "it never holds: {what}");
            tokio::time::sleep(STEP).await;
            if let Some(clock) = &self.manual {
                clock.advance(STEP);
            }
        }
    }

    /// So many workers that have something in each of their slots: handlers of these lengths.
    async fn full_workers(&self, count: usize, lengths: [Duration; SLOTS]) -> Vec<Full> {
        let start = |_| {
            let watch = Watch { clock: self.clock.clone(), ran: Arc::default() };
            let handlers = Registry::new().handle(watched).build().unwrap();
            let worker = Worker::new(&self.jobs, handlers, watch.clone()).lease(self.lease);
            let worker = worker.concurrency(SLOTS).grace_period(Duration::from_secs(2));
            Full { watch, running: Running::start(worker) }
        };
        let full: Vec<Full> = (0..count).map(start).collect();
        self.enqueue((0..count).flat_map(|_| lengths)).await;
        let are_full = || full.iter().all(|worker| worker.watch.of("innocent").len() == SLOTS);
        self.until("all slots are taken", are_full).await;
        full
    }

    async fn enqueue(&self, lengths: impl IntoIterator<Item = Duration>) {
        let innocents = lengths.into_iter().map(|it| act(&format!("innocent {}", it.as_millis())));
        self.jobs.enqueue_all(innocents.collect::<Vec<_>>()).await.unwrap();
    }

    /// How late the workers may be with what waits on the rule alone: a full one looks only so often,
    /// and where time is real the machine may be busy for as long as a lease stands.
    fn way(&self) -> Duration {
        let real = if self.manual.is_some() { STEP * 10 } else { self.rule.length() };
        self.rule.heartbeat() + real
    }
}

/// What the handlers of one worker tell.
#[derive(Debug, Clone)]
struct Watch {
    clock: Arc<dyn Clock>,
    ran: Arc<Mutex<Vec<Ran>>>,
}

#[derive(Debug, Clone)]
struct Ran {
    how: String,
    /// It has not ended as long as this is the end of time.
    during: Range<Duration>,
}

impl Watch {
    /// The runs of jobs of whose text this is the beginning.
    fn of(&self, how: &str) -> Vec<Range<Duration>> {
        let ran = self.ran.lock().unwrap();
        ran.iter().filter(|ran| ran.how.starts_with(how)).map(|ran| ran.during.clone()).collect()
    }

    /// How many innocents ran at some time of this one.
    fn beside(&self, one: &Range<Duration>) -> usize {
        let met = |other: &Range<Duration>| other.start < one.end && one.start < other.end;
        self.of("innocent").iter().filter(|other| met(other)).count()
    }
}

struct Full {
    watch: Watch,
    running: Running,
}

async fn watched(job: Act, cx: JobContext<Watch>) -> Result<(), JobError> {
    let Watch { clock, ran } = &cx.state;
    let length = job.how.split(' ').nth(1).map(|text| text.parse().unwrap());
    let nth = {
        let mut ran = ran.lock().unwrap();
        ran.push(Ran { how: job.how.clone(), during: clock.elapsed()..Duration::MAX });
        ran.len() - 1
    };
    tokio::time::sleep(length.map_or(STEP * 10, Duration::from_millis)).await;
    ran.lock().unwrap()[nth].during.end = clock.elapsed();
    Ok(())
}

/// The run of the one suspect, once it has ended, how long it had waited, and which of the workers
/// ran it.
async fn waited(
    stage: &Stage,
    full: &[Full],
    since: Duration,
) -> (Range<Duration>, Duration, usize) {
    let ended = || {
        full.iter().enumerate().find_map(|(nth, worker)| {
            let run = worker.watch.of("suspect").pop()?;
            (run.end != Duration::MAX).then_some((run, nth))
        })
    };
    stage.until("the suspect has ended", || ended().is_some()).await;
    let (run, nth) = ended().unwrap();
    (run.clone(), run.start.saturating_sub(since), nth)
}

/// Two workers whose handlers are long, and a backlog of more: the suspect gets one of them to itself.
async fn alone_in_time(stage: Stage) {
    let clear = stage.rule.clear_after();
    let longest = clear * 2 / 3;
    // Never all of them free at once.
    let lengths = [4, 5, 5, 6].map(|sixths| longest * sixths / 6);
    let full = stage.full_workers(2, lengths).await;
    let since = stage.clock.elapsed();
    suspect(&stage.jobs).await;
    stage.enqueue((0..10 * SLOTS).map(|nth| lengths[nth % SLOTS])).await;
    let (run, waited, nth) = waited(&stage, &full, since).await;
    assert!(waited >= clear, "not yet cleared for: {waited:?}");
    let limit = clear + stage.way() + longest;
    assert!(waited <= limit, "it waited for {waited:?} of {limit:?}");
    assert_eq!(full[nth].watch.beside(&run), 0, "it ran alone");
    assert!(full[1 - nth].watch.beside(&run) > 0, "the other worker went on");
    for worker in full {
        worker.running.stop().await;
    }
}

/// A worker of whose handlers one does not end: it is never clear.
async fn beside_in_time(stage: Stage) {
    let (clear, beside) = (stage.rule.clear_after(), stage.rule.beside_after());
    let long = clear / 2;
    let full = stage.full_workers(1, [beside * 3, long, long, long]).await;
    let since = stage.clock.elapsed();
    suspect(&stage.jobs).await;
    stage.enqueue((0..30 * SLOTS).map(|_| long)).await;
    let (run, waited, _) = waited(&stage, &full, since).await;
    assert!(waited >= beside, "not yet: {waited:?}");
    let limit = beside + stage.way() + long;
    assert!(waited <= limit, "it waited for {waited:?} of {limit:?}");
    assert!(full[0].watch.beside(&run) > 0, "it ran beside others");
    if stage.manual.is_some() {
        assert!(limit <= Duration::from_mins(6), "{limit:?}");
    }
    for worker in full {
        worker.running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspect_gets_a_full_worker_to_itself_when_it_has_waited_for_a_minute() {
    alone_in_time(Stage::in_virtual_time()).await;
}

#[tokio::test(start_paused = true)]
async fn a_suspect_starts_within_six_minutes_where_no_worker_comes_to_be_clear() {
    beside_in_time(Stage::in_virtual_time()).await;
}

/// A worker with a long lease renews seldom, and must look at what waits all the same.
#[tokio::test(start_paused = true)]
async fn a_suspect_starts_within_six_minutes_where_no_slot_is_free_for_five() {
    let stage = Stage::in_virtual_time();
    let long = stage.rule.beside_after() + Duration::from_secs(30);
    let full = stage.full_workers(1, [long; SLOTS]).await;
    let since = stage.clock.elapsed();
    suspect(&stage.jobs).await;
    stage.enqueue((0..4 * SLOTS).map(|_| long)).await;
    let (_, waited, _) = waited(&stage, &full, since).await;
    assert!(waited <= Duration::from_mins(6), "it waited for {waited:?}");
    for worker in full {
        worker.running.stop().await;
    }
}

#[tokio::test]
async fn over_a_file_a_suspect_gets_a_full_worker_to_itself_in_time() {
    alone_in_time(Stage::in_real_time().await).await;
}

#[tokio::test]
async fn over_a_file_a_suspect_starts_in_time_where_no_worker_comes_to_be_clear() {
    beside_in_time(Stage::in_real_time().await).await;
}
