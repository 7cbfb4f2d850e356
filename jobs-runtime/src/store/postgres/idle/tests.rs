use std::task::Poll;

use futures_util::poll;

use super::*;
use crate::clock::instant_in;

/// The first who asks has to open a connection.
async fn turn(idle: &Idle<u8>) -> Turn<'_> {
    match idle.next().await {
        Next::Open(turn @ Some(_)) => turn,
        other => panic!("the first who asks is to open one: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_turn_takes_what_is_given_back() {
    let idle = Idle::default();
    let _turn = turn(&idle).await;
    let (mut first, mut second) = (Box::pin(idle.next()), Box::pin(idle.next()));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    idle.give_back(7);
    assert!(matches!(poll!(&mut first), Poll::Ready(Next::Idle(7))));
    assert!(poll!(&mut second).is_pending());
    idle.give_back(8);
    assert!(matches!(poll!(&mut second), Poll::Ready(Next::Idle(8))));
}

#[tokio::test(start_paused = true)]
async fn one_is_opened_after_another() {
    let idle = Idle::<u8>::default();
    let first = turn(&idle).await;
    let mut second = Box::pin(idle.next());
    assert!(poll!(&mut second).is_pending());
    drop(first);
    assert!(matches!(poll!(&mut second), Poll::Ready(Next::Open(Some(_)))));
}

#[tokio::test(start_paused = true)]
async fn where_the_server_is_slow_nobody_waits_for_the_turn_of_all_others() {
    let idle = Idle::<u8>::default();
    let _turn = turn(&idle).await;
    let now = || instant_in(Duration::ZERO).expect("now is no far future");
    let begun = now();
    assert!(matches!(idle.next().await, Next::Open(None)));
    assert_eq!(now().duration_since(begun), MOMENT);
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_given_to_nobody() {
    let idle = Idle::default();
    idle.give_back(7);
    idle.forget();
    drop(turn(&idle).await);
}
