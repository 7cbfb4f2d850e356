//! A snapshot that is held open elsewhere: vacuum can't remove what it might still see.

use std::collections::BTreeSet;
use std::time::Duration;

use jobs_runtime::prelude::*;
use tests::cluster::Cluster;
use tests::{Work, sized, until};

use crate::crew::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_a_held_snapshot_claims_go_on_and_a_warning_names_it() {
    let cluster = Cluster::start(&["autovacuum_naptime = 1s"]).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let mut holder = shell(&cluster.url()).await;
    let held = "SET application_name = 'nightly report'; \
                BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM jobs.job LIMIT 1";
    sqlx::raw_sql(held).execute(&mut holder).await.unwrap();
    let store = jobs.store();
    let warned = async || {
        let warnings = store.warnings(Duration::from_millis(200)).await.unwrap();
        warnings.iter().any(|warning| warning.contains("nightly report"))
    };
    let told = Told::default();
    let crew = Crew::start([worker(&jobs, &told).concurrency(50)]);
    let mut acknowledged = BTreeSet::new();
    for _ in 0..sized(8, 100) {
        let added = jobs.enqueue_all((0..500).map(|_| Work { millis: 0 })).await.unwrap();
        acknowledged.extend(added.iter().map(|added| added.id()));
    }
    until_idle(&jobs).await;
    assert_each_succeeded_once(&jobs, &acknowledged, &told).await;
    until("a warning names it", SOON, warned).await;
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    until("it is named no more", SOON, async || !warned().await).await;
    crew.stop().await;
}
