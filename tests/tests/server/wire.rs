//! Claims whose answer is on the wire when the worker is told to stop.

use jobs_runtime::prelude::*;
use jobs_runtime::store::Phase;
use jobs_runtime::{Counters, State};
use tests::cluster::Cluster;
use tests::proxy::{Flow, Proxy};
use tests::{Work, sized, until};

use crate::crew::*;

/// What is in a claim and in nothing else.
const CLAIM: &str = "SET state = 'running'";

/// How the answer to the claim fares.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// It comes after the stop.
    Late,
    /// The server has committed, and its answer is dropped with the connection.
    Lost,
    /// Every connection is cut after the commit.
    Cut,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_on_the_wire_at_the_stop_goes_back_unrun_and_counts_nothing() {
    let cluster = Cluster::start(&[]).await;
    let proxy = Proxy::start(&cluster.socket()).await;
    let jobs = Jobs::open(&cluster.url()).await.unwrap();
    let far = Jobs::open(&proxy.url()).await.unwrap();
    let answers = [Answer::Late, Answer::Lost, Answer::Cut];
    for (turn, answer) in answers.into_iter().cycle().take(sized(9, 200)).enumerate() {
        let told = Told::default();
        let crew = Crew::start([worker(&far, &told)]);
        until("the worker is up", SOON, async || {
            let workers = jobs.inspect().workers().await.unwrap();
            workers.iter().filter(|worker| worker.ended_at.is_none()).count() == 1
        })
        .await;
        match answer {
            Answer::Late | Answer::Cut => proxy.hold_answers(CLAIM),
            Answer::Lost => proxy.lose_answers(CLAIM, 1),
        }
        let id = jobs.enqueue(Work { millis: 0 }).await.unwrap().id();
        let read = async || jobs.job(id).await.unwrap().unwrap();
        until("the store says that it runs", SOON, async || read().await.state == State::Running)
            .await;
        crew.ask();
        until("the worker has heard of the stop", SOON, async || {
            let workers = jobs.inspect().workers().await.unwrap();
            workers.first().is_some_and(|worker| worker.phase != Phase::Working)
        })
        .await;
        if let Answer::Cut = answer {
            proxy.set(Flow::Cut);
        }
        proxy.let_go();
        proxy.set(Flow::Open);
        crew.stop().await;
        let record = read().await;
        let what = format!("turn {turn}, {answer:?}");
        assert_eq!((record.state, record.counters), (State::Ready, Counters::default()), "{what}");
        assert_eq!(told.runs().len(), 0, "{what}: nobody ran it");
        assert!(jobs.inspect().events(id).await.unwrap().is_empty(), "{what}");
        jobs.operate().cancel(&[id]).await.unwrap();
    }
    for deploy in jobs.inspect().deploys().await.unwrap() {
        println!("{deploy:?}");
    }
}
