//! What jobs of the next build cost the workers of this one, which can't read them: as much as an empty
//! queue, and a probe of each route now and then. How many statements that are, `statements.rs` of
//! jobs-runtime counts; here it is what they touch.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tests::schema::server_url;

use super::rollouts::{OLD, new};
use super::*;

const FOREIGN: u64 = 100_000;
/// A new kind, and a newer version of an old one.
const ROUTES: u64 = 2;
/// A route is probed again after this at the earliest.
const COOL_DOWN_S: u64 = 9;

#[tokio::test]
async fn old_workers_alone_touch_no_more_of_foreign_jobs_than_their_probes_do() {
    let seconds = sized(15, 60);
    let probes = ROUTES * (seconds / COOL_DOWN_S + 1);
    // The bytes of a file, of which a scan would read twenty million; the rows and index entries of a
    // server, of which there are a hundred thousand. In the full size a look for stranded jobs is among
    // them, which counts a thousand of each route.
    let a_probe = [400_000, 300];
    let both = STORES.into_iter().zip(a_probe).map(async |(store, a_probe)| {
        let span = Duration::from_secs(seconds);
        let (empty, beside) = tokio::join!(touched(store, 0, span), touched(store, FOREIGN, span));
        println!("{seconds} s: {empty} touched in an empty queue, {beside} beside {FOREIGN} jobs");
        let allowed = empty + probes * a_probe;
        assert!(beside <= allowed, "{beside} touched, of {empty} + {probes} probes * {a_probe}");
    });
    for checked in both {
        checked.await;
    }
}

/// How much an old worker touches in its life beside so many foreign jobs.
async fn touched(store: MakeSetup, foreign: u64, span: Duration) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let setup = store(OLD, folder.path());
    let jobs = setup.open().await;
    let mails = (0..foreign / 2).map(|n| new::Mail { micros: n, note: String::new() });
    jobs.enqueue_all(mails).await.unwrap();
    jobs.enqueue_all((0..foreign / 2).map(|millis| new::Digest { millis })).await.unwrap();
    let before = told_by_the_server(&setup, |rows| rows.added >= foreign).await;
    let process = setup.start("old");
    let is_up = async || process.log().contains("registered worker");
    until("the worker is up", Duration::from_secs(30), is_up).await;
    tokio::time::sleep(span).await;
    let bytes = process.bytes_read();
    process.signal(Signal::TERM);
    assert!(process.wait().success());
    // What its connections have done is told at their end at the latest.
    let after = told_by_the_server(&setup, |rows| rows.ended_workers > 0).await;
    let rows = before.zip(after).map(|(before, after)| after.touched - before.touched);
    assert_eq!(count(&jobs, State::Succeeded).await + count(&jobs, State::Dead).await, 0);
    rows.unwrap_or(bytes)
}

/// What a server tells of a schema.
struct Rows {
    touched: u64,
    added: u64,
    ended_workers: u64,
}

/// Asks until an answer will do; `None` over a file.
async fn told_by_the_server(setup: &Setup, will_do: impl Fn(&Rows) -> bool) -> Option<Rows> {
    let schema = setup.schema.as_ref()?.name();
    let mut shell = PgConnection::connect(&server_url()).await.expect("a server");
    let asked = format!(
        "SELECT (SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read + n_tup_upd + n_tup_ins) \
         FROM pg_stat_user_tables WHERE schemaname = '{schema}')::bigint + \
         (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '{schema}')::bigint, \
         (SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE schemaname = '{schema}' \
         AND relname = 'job')::bigint, \
         (SELECT count(*) FROM {schema}.worker WHERE ended_at_us IS NOT NULL)"
    );
    for _ in 0..600 {
        let (touched, added, ended_workers): (i64, i64, i64) =
            sqlx::query_as(AssertSqlSafe(asked.clone())).fetch_one(&mut shell).await.unwrap();
        let [touched, added, ended_workers] =
            [touched, added, ended_workers].map(i64::unsigned_abs);
        let rows = Rows { touched, added, ended_workers };
        if will_do(&rows) {
            return Some(rows);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server tells nothing of it");
}
