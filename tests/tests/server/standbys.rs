//! A standby that takes over.

use jobs_runtime::prelude::*;
use jobs_runtime::{ErrorKind, StoreErrorKind, chain};
use tests::cluster::Cluster;
use tests::proxy::{Flow, Proxy};
use tests::{Work, sized, until};

use crate::crew::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_fail_over_and_workers_go_on() {
    let mut primary = Cluster::start(&[]).await;
    let standby = primary.standby().await;
    let mut shell = shell(&primary.url()).await;
    let synchronous = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    sqlx::raw_sql(synchronous).execute(&mut shell).await.unwrap();
    sqlx::raw_sql("SELECT pg_reload_conf()").execute(&mut shell).await.unwrap();
    let proxy = Proxy::start(&primary.socket()).await;
    let (jobs, told) = (Jobs::open(&proxy.url()).await.unwrap(), Told::default());
    let other = Jobs::open(&proxy.url()).await.unwrap();
    let crew = Crew::start([worker(&jobs, &told), worker(&other, &told)]);
    let enqueuer = Enqueuer::start(&jobs);
    let part = sized(150, 2_000);
    until_succeeded(&jobs, part).await;
    // A switch goes in this order, so that nobody writes to both.
    proxy.set(Flow::Cut);
    primary.stop_at_once();
    // For a moment they reach a server that takes no writes, with runs that have ended in hand.
    proxy.lead_to(&standby.socket());
    // So the server calls what workers send all the time: renewals, promotions and successes. A claim they
    // send only where something is ready.
    let refused = "cannot execute SELECT in a read-only transaction";
    until("writes are refused", SOON, async || standby.read_log().contains(refused)).await;
    standby.promote();
    until_succeeded(&jobs, part * 2).await;
    let acknowledged = enqueuer.stop().await;
    until_idle(&jobs).await;
    assert_each_succeeded_once(&jobs, &acknowledged, &told).await;
    crew.stop().await;
}

#[tokio::test]
async fn a_standby_says_that_it_takes_no_writes() {
    let primary = Cluster::start(&[]).await;
    let standby = primary.standby().await;
    let error = Jobs::open(&standby.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::ReadOnly));
    assert!(chain(&error).contains("is it a standby?"), "{}", chain(&error));
    Jobs::open(&primary.url()).await.unwrap();
    until("the schema is there", SOON, async || Jobs::open(&standby.url()).await.is_ok()).await;
    let jobs = Jobs::open(&standby.url()).await.unwrap();
    let error = jobs.enqueue(Work { millis: 0 }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store(StoreErrorKind::ReadOnly));
    assert!(chain(&error).contains("is it a standby?"), "{}", chain(&error));
}
