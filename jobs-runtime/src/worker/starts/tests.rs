use std::pin::pin;

use futures_util::poll;

use super::*;
use crate::clock::instant_in;

#[tokio::test(start_paused = true)]
async fn who_waits_goes_on_with_the_first_turn_of_the_last_run() {
    let starts = Starts::default();
    starts.had_turns().await;
    starts.add(2);
    let mut waiting = pin!(starts.had_turns());
    starts.had_turn();
    assert!(poll!(&mut waiting).is_pending(), "one run has not had its turn");
    starts.had_turn();
    assert!(poll!(&mut waiting).is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_turn_between_the_look_and_the_wait_is_heard_of() {
    let starts = Starts::default();
    starts.add(1);
    let mut waiting = pin!(starts.had_turns());
    assert!(poll!(&mut waiting).is_pending());
    starts.had_turn();
    assert!(poll!(&mut waiting).is_ready(), "it hears of what came while it was not polled");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_gets_no_thread_holds_nobody_up_for_long_and_only_once() {
    let starts = Starts::default();
    starts.add(1);
    let now = || instant_in(Duration::ZERO).expect("now is no far future");
    let begun = now();
    starts.had_turns().await;
    assert_eq!(now().duration_since(begun), LONGEST);
    starts.had_turns().await;
    assert_eq!(now().duration_since(begun), LONGEST, "it is waited for no more");
    starts.had_turn();
    starts.add(1);
    let mut waiting = pin!(starts.had_turns());
    assert!(poll!(&mut waiting).is_pending(), "its late turn, had before, counts for no other run");
}
