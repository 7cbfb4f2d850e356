//! A server that crashes and comes back.

use std::collections::BTreeMap;

use jobs_runtime::prelude::*;
use jobs_runtime::{ClaimNumber, JobId, State};
use sqlx::Postgres;
use tests::cluster::Cluster;
use tests::sized;

use crate::crew::*;

/// The jobs that have succeeded, and by which run.
async fn successes(jobs: &Jobs) -> BTreeMap<JobId, ClaimNumber> {
    let succeeded = all(jobs).await.into_iter().filter(|record| record.state == State::Succeeded);
    succeeded.map(|record| (record.id, record.claim)).collect()
}

/// Opens two transactions of the application at once, and ends them.
async fn begin_two(jobs: &Jobs) {
    let one = jobs.begin::<Postgres>().await.unwrap();
    jobs.begin::<Postgres>().await.unwrap().rollback().await.unwrap();
    one.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_crash_and_workers_go_on() {
    let mut cluster = Cluster::start(&[]).await;
    let (jobs, told) = (Jobs::open(&cluster.url()).await.unwrap(), Told::default());
    let other = Jobs::open(&cluster.url()).await.unwrap();
    let crew = Crew::start([worker(&jobs, &told), worker(&other, &told)]);
    let enqueuer = Enqueuer::start(&jobs);
    let mut seen = BTreeMap::new();
    let part = sized(150, 2_000);
    for _ in 0..2 {
        until_succeeded(&jobs, u64::try_from(seen.len()).unwrap() + part).await;
        let before = successes(&jobs).await;
        // Sessions for transactions of the application, which wait in its pool.
        begin_two(&jobs).await;
        cluster.stop_at_once();
        cluster.start_again().await;
        begin_two(&jobs).await;
        seen.extend(before);
    }
    until_succeeded(&jobs, u64::try_from(seen.len()).unwrap() + part).await;
    let acknowledged = enqueuer.stop().await;
    until_idle(&jobs).await;
    let now = successes(&jobs).await;
    for (job, claim) in seen {
        assert_eq!(now.get(&job), Some(&claim), "job {job} had succeeded");
    }
    assert_each_succeeded_once(&jobs, &acknowledged, &told).await;
    crew.stop().await;
}
