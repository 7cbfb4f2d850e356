//! What the PostgreSQL store does when locks, servers and runtimes get in its way.

#![expect(clippy::disallowed_methods, reason = "the wire ends with the test's runtime")]
#![cfg(feature = "postgres")]

mod postgres_support;

use std::sync::Arc;
use std::time::Duration;

use jobs_core::store::conformance::Subject;
use jobs_core::store::{
    Author, Claim, Claimed, Enqueued, Leaving, NewWorker, Retention, Row, Settled, Store,
};
use jobs_core::{
    BuildId, ClaimedJob, Ending, Fence, Kind, Ladder, Lease, NewJob, Notes, QueueName, Run,
    Settlement, State, StoreErrorKind, UniqueKey, UniqueWhile, WorkerId, WorkerName, transition,
};
use jobs_runtime::store::postgres::{PostgresOptions, PostgresStore};
use sqlx::ConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use postgres_support::{TestStore, block_on, server, server_url, with_schema, with_store};

#[test]
fn a_locked_row_delays_no_settlement_of_others() {
    with_store(async |subject| {
        let (worker, runs) = running(&subject, &vec![job(); 4]).await;
        let mut held = subject.store.begin().await.unwrap();
        subject.store.done_in(&mut held, runs[1].fence, &Notes::default()).await.unwrap();
        let settled = settle(&subject, worker, &runs, &Ending::Done).await;
        let applied = Settled::Applied(State::Succeeded);
        assert_eq!(settled, [applied, Settled::Locked, applied, applied]);
        let settled = settle(&subject, worker, &runs, &Ending::Done).await;
        let lost = Settled::LeaseLost;
        assert_eq!(settled, [lost, Settled::Locked, lost, lost]);
        held.rollback().await.unwrap();
        let settled = settle(&subject, worker, &runs[1..2], &Ending::Done).await;
        assert_eq!(settled, [applied]);
    });
}

#[test]
fn a_held_key_delays_no_settlement_of_others() {
    with_store(async |subject| {
        let key = Some(UniqueKey::new("one").unwrap());
        let keyed = NewJob { unique_key: key, ..job() };
        let (worker, runs) = running(&subject, &[job(), keyed.clone(), job()]).await;
        let mut held = subject.store.begin().await.unwrap();
        subject.store.enqueue_in(&mut held, &[keyed]).await.unwrap();
        let snoozed = Ending::Snoozed(Duration::from_mins(1));
        let settled = settle(&subject, worker, &runs, &snoozed).await;
        let applied = Settled::Applied(State::Scheduled);
        assert_eq!(settled, [applied, Settled::Locked, applied]);
        held.rollback().await.unwrap();
        assert_eq!(settle(&subject, worker, &runs[1..2], &snoozed).await, [applied]);
    });
}

/// Two enqueues in transactions, which go on together once each waits for its gate: one for the key "a", the
/// other for "b".
async fn enqueue_past_gates(subject: &TestStore, calls: [Vec<NewJob>; 2]) -> [Vec<Enqueued>; 2] {
    let pid = "SELECT pg_backend_pid()";
    let mut held = subject.store.begin().await.unwrap();
    let held_by: i32 = sqlx::query_scalar(pid).fetch_one(&mut *held).await.unwrap();
    subject.store.enqueue_in(&mut held, &["a", "b"].map(keyed)).await.unwrap();
    let calls = calls.map(|jobs| {
        let store = subject.store.clone();
        tokio::spawn(async move {
            let mut tx = store.begin().await.unwrap();
            let answers = store.enqueue_in(&mut tx, &jobs).await?;
            tx.commit().await.unwrap();
            Ok::<_, jobs_core::StoreError>(answers)
        })
    });
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE {held_by} = ANY (pg_blocking_pids(pid))"
    );
    let both_wait = async {
        while subject.number(&waiting).await < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(8), both_wait).await.expect("each meets its gate");
    held.rollback().await.unwrap();
    let [one, other] = calls;
    [one.await, other.await].map(|answer| answer.unwrap().expect("no victim of a deadlock"))
}

/// Each has taken its first thousand keys when it meets those of the other.
#[test]
fn two_transactions_with_thousands_of_keys_wait_for_each_other_in_no_circle() {
    with_store(async |subject| {
        let number = |nth: u32| keyed(&format!("k{nth:04}"));
        let one = (0..1_000).map(number).chain([keyed("a")]).chain((1_000..1_500).map(number));
        let other = (1_000..2_000).map(number).chain([keyed("b")]).chain((0..500).map(number));
        for answers in enqueue_past_gates(&subject, [one.collect(), other.collect()]).await {
            let added = |answer: &Enqueued| matches!(answer, Enqueued::Added(_));
            let ids: Vec<_> =
                answers.iter().filter(|it| added(it)).map(|answer| answer.id()).collect();
            assert!(ids.is_sorted(), "the numbers rise in the order of the call");
        }
        assert_eq!(subject.number("SELECT count(*) FROM {schema}.job").await, 2_002);
        let instants = "SELECT count(DISTINCT due_at_us) FROM {schema}.job";
        assert_eq!(subject.number(instants).await, 2, "a call is due at one instant");
    });
}

/// Each binds the key beyond the wait that the other binds for the wait, and has locked it, if it locks those
/// first, when it meets that of the other.
#[test]
fn two_transactions_that_mix_scopes_of_keys_wait_for_each_other_in_no_circle() {
    with_store(async |subject| {
        subject.store.enqueue(&["k1", "k2"].map(keyed)).await.unwrap();
        let scoped = |key| NewJob { unique_while: UniqueWhile::Running, ..keyed(key) };
        let one = [keyed("a"), keyed("k1"), scoped("k2")];
        let other = [keyed("b"), scoped("k1"), keyed("k2")];
        for answers in enqueue_past_gates(&subject, [one.into(), other.into()]).await {
            let is_added = |answer: &Enqueued| matches!(answer, Enqueued::Added(_));
            assert_eq!(answers.iter().map(is_added).collect::<Vec<_>>(), [true, false, false]);
        }
    });
}

#[test]
fn what_a_trigger_refuses_is_not_told_as_a_server_that_is_away() {
    with_store(async |subject| {
        let (worker, runs) = running(&subject, &vec![job(); 2]).await;
        subject
            .sql(
                "CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql \
                 AS $$ BEGIN RAISE 'not this one'; END $$",
            )
            .await;
        let refused = runs[0].fence.job;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE UPDATE ON {{schema}}.job FOR EACH ROW \
             WHEN (OLD.id = {refused}) EXECUTE FUNCTION {{schema}}.refuse()"
        );
        subject.sql(&trigger).await;
        let ended = |job| transition(&Run::from(job), &Ending::Done, &Ladder::default(), 0);
        let settlements: Vec<Settlement> = runs.iter().map(ended).collect();
        let error = subject.store.settle(&author(worker), &settlements).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{error:?}");
        let told =
            "could not settle runs: a trigger on the tables of jobs refused it: not this one";
        assert_eq!(format!("{error:?}"), told);
        let settled = settle(&subject, worker, &runs[1..], &Ending::Done).await;
        assert_eq!(settled, [Settled::Applied(State::Succeeded)]);
    });
}

#[test]
fn a_reread_answers_the_rows_beside_a_locked_one() {
    with_store(async |subject| {
        let (_, runs) = running(&subject, &vec![job(); 2]).await;
        let mut held = subject.store.begin().await.unwrap();
        subject.store.done_in(&mut held, runs[0].fence, &Notes::default()).await.unwrap();
        let fences: Vec<Fence> = runs.iter().map(|run| run.fence).collect();
        let rows = subject.store.reread(&fences).await.unwrap();
        assert_eq!(rows, [Row::Locked, Row::Running(runs[1].counters)]);
        held.commit().await.unwrap();
        let rows = subject.store.reread(&fences[..1]).await.unwrap();
        assert_eq!(rows, [Row::Settled(State::Succeeded)]);
    });
}

#[test]
fn a_prune_under_its_limit_forgets_old_workers_too() {
    with_store(async |subject| {
        let (worker, runs) = running(&subject, &[job()]).await;
        settle(&subject, worker, &runs, &Ending::Done).await;
        let mut heartbeat = subject.store.heartbeat().await.unwrap();
        heartbeat.close(worker, &author(worker), &Leaving::default()).await.unwrap();
        subject.advance(Duration::from_hours(24 * 365)).await;
        assert_eq!(subject.store.prune(Retention::default(), 10).await.unwrap(), 1);
        assert_eq!(subject.number("SELECT count(*) FROM {schema}.worker").await, 0);
    });
}

#[test]
fn a_bell_rings_on_after_the_runtime_of_its_window_ended() {
    with_store(async |subject| {
        let store = subject.store.clone();
        let begin = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Its last statement begins a window, which ends with the runtime.
            runtime.unwrap().block_on(async { store.enqueue(&[job()]).await.map(drop) })
        };
        std::thread::spawn(begin).join().unwrap().unwrap();
        let mut wake = subject.store.wake();
        // The first return says that it listens.
        wake.changed().await;
        subject.store.enqueue(&[job()]).await.unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(20), wake.changed()).await;
        assert!(heard.is_ok(), "an enqueue wakes who listens");
    });
}

#[test]
fn all_who_wait_hear_of_one_enqueue() {
    with_store(async |subject| {
        let mut wakes: Vec<_> = (0..5).map(|_| subject.store.wake()).collect();
        // The first return of each says that the store listens.
        futures_util::future::join_all(wakes.iter_mut().map(|wake| wake.changed())).await;
        subject.store.enqueue(&[job()]).await.unwrap();
        let heard = futures_util::future::join_all(wakes.iter_mut().map(|wake| wake.changed()));
        let heard = tokio::time::timeout(Duration::from_secs(20), heard).await;
        assert!(heard.is_ok(), "an enqueue wakes all who listen");
    });
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    with_schema(async |schema| {
        let wire = Wire::start().await;
        let options = PostgresOptions::default()
            .schema(schema.as_str())
            .connect_timeout(Duration::from_secs(2))
            .statement_timeout(Duration::from_secs(2));
        let store = PostgresStore::open(&wire.url, options).await.unwrap();
        store.enqueue(&[job()]).await.unwrap();
        wire.cut();
        let error = store.enqueue(&[job()]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        let error = store.promote(1).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    });
}

#[test]
fn settings_that_can_not_be_worked_with_are_refused_with_the_reason() {
    let refusal = |options: PostgresOptions| {
        let error = block_on(PostgresStore::open(&server_url(), options)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error}");
        error.to_string()
    };
    let options = PostgresOptions::default;
    for most in [0, 10_001, u32::MAX] {
        assert_eq!(
            refusal(options().connections(most)),
            format!("{most} connections are not 1 to 10000")
        );
    }
    for span in [Duration::ZERO, Duration::from_hours(24) + Duration::from_nanos(1), Duration::MAX]
    {
        let told = |name| format!("a {name} of {span:?} is not 1 ms to 24 h");
        assert_eq!(refusal(options().connect_timeout(span)), told("connect_timeout"));
        assert_eq!(refusal(options().statement_timeout(span)), told("statement_timeout"));
        assert_eq!(refusal(options().patience(span)), told("patience"));
    }
}

#[test]
fn who_reaches_no_server_or_no_connection_is_told_what_to_look_at() {
    block_on(async {
        let url = "postgres://me@127.0.0.1:1/shop";
        let error = PostgresStore::open(url, PostgresOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(error.to_string().contains("does the server run"), "{error}");
        let place = "no connection to 127.0.0.1:1/shop, schema \"jobs\"";
        assert!(error.to_string().starts_with(place), "{error}");
        assert_eq!(format!("{error:?}").matches("onnection refused").count(), 1, "{error:?}");
    });
    with_schema(async |schema| {
        let options = PostgresOptions::default().schema(&schema).connections(1);
        let options = options.connect_timeout(Duration::from_millis(200));
        let store = PostgresStore::open(&server_url(), options).await.unwrap();
        let open = store.begin().await.unwrap();
        let error = store.begin().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Busy);
        assert!(error.to_string().contains("does a transaction stay open"), "{error}");
        open.rollback().await.unwrap();
    });
}

fn job() -> NewJob {
    NewJob { kind: Kind::new("mail.send").unwrap(), ..postgres_support::job() }
}

fn keyed(key: &str) -> NewJob {
    NewJob { unique_key: Some(UniqueKey::new(key).unwrap()), ..job() }
}

fn author(worker: WorkerId) -> Author {
    Author { worker: Some(worker), build: BuildId::new("shop 1").unwrap() }
}

/// Enqueues jobs and claims them, in order.
async fn running(subject: &TestStore, jobs: &[NewJob]) -> (WorkerId, Vec<ClaimedJob>) {
    let worker = NewWorker {
        name: WorkerName::new("w").unwrap(),
        build: BuildId::new("shop 1").unwrap(),
        manifest: "{}".to_owned(),
        lease: Lease::default(),
    };
    let worker = subject.store.register(&worker).await.unwrap();
    subject.store.enqueue(jobs).await.unwrap();
    let routes = subject.store.routes(&[QueueName::default()]).await.unwrap();
    let heads: Vec<_> = routes.into_iter().map(|listed| listed.head(1000)).collect();
    match subject.store.claim(Claim { worker, heads: &heads, limit: 1000 }).await.unwrap() {
        Claimed::Jobs(runs) => {
            assert_eq!(runs.len(), jobs.len(), "every job is claimed");
            (worker, runs)
        }
        Claimed::WorkerEnded => panic!("the worker lives"),
    }
}

async fn settle(
    subject: &TestStore,
    worker: WorkerId,
    runs: &[ClaimedJob],
    ending: &Ending,
) -> Vec<Settled> {
    let ended = |job| transition(&Run::from(job), ending, &Ladder::default(), 0);
    let settlements: Vec<Settlement> = runs.iter().map(ended).collect();
    subject.store.settle(&author(worker), &settlements).await.unwrap()
}

/// A way to the test server that can fall silent without closing a connection.
struct Wire {
    url: String,
    is_cut: Arc<watch::Sender<bool>>,
}

impl Wire {
    async fn start() -> Self {
        let server = server();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut url = server.to_url_lossy();
        url.set_host(Some("127.0.0.1")).expect("a host fits");
        url.set_port(Some(port)).expect("a port fits");
        let url = url.to_string();
        let is_cut = Arc::new(watch::Sender::new(false));
        let cut = Arc::clone(&is_cut);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let host = server.get_host();
                let socket = server.get_socket().cloned();
                let socket = socket.or_else(|| host.starts_with('/').then(|| host.into()));
                if let Some(folder) = socket {
                    let path = folder.join(format!(".s.PGSQL.{}", server.get_port()));
                    pass(client, UnixStream::connect(path).await.unwrap(), &cut);
                } else {
                    let address = (host, server.get_port());
                    pass(client, TcpStream::connect(address).await.unwrap(), &cut);
                }
            }
        });
        Self { url, is_cut }
    }

    fn cut(&self) {
        self.is_cut.send_replace(true);
    }
}

fn pass<S>(client: TcpStream, server: S, cut: &watch::Sender<bool>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = tokio::io::split(server);
    tokio::spawn(copy(from_client, to_server, cut.subscribe()));
    tokio::spawn(copy(from_server, to_client, cut.subscribe()));
}

/// Copies until the end, or, once the wire is cut, swallows everything and closes nothing.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    cut: watch::Receiver<bool>,
) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        if !*cut.borrow() && to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
