use std::pin::pin;

use futures_util::FutureExt;
use tempfile::TempDir;

use super::*;

/// Two writers as of two processes: the system tells lockers apart by the opening of a file.
fn two() -> (TempDir, Line, Line) {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [(), ()].map(|()| Line::open(folder.path()).unwrap());
    (folder, first, second)
}

/// Waits for what a thread is about to do.
fn soon(is_done: impl Fn() -> bool) {
    while !is_done() {
        std::thread::yield_now();
    }
}

fn is_locked(folder: &TempDir, name: &str) -> bool {
    let file = opened(folder.path(), name).unwrap();
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

#[tokio::test]
async fn one_writer_is_inside_and_its_leave_lets_the_next_one_in() {
    let (_folder, mut first, mut second) = two();
    first.enter().await;
    assert!(first.is_inside);
    {
        let mut entering = pin!(second.enter());
        assert!(entering.as_mut().now_or_never().is_none());
        first.leave();
        entering.await;
    }
    assert!(second.is_inside);
}

#[tokio::test]
async fn who_comes_back_stands_behind_those_who_wait() {
    let (folder, mut first, mut second) = two();
    first.enter().await;
    let mut entering = Box::pin(async {
        second.enter().await;
        second
    });
    assert!(entering.as_mut().now_or_never().is_none());
    soon(|| is_locked(&folder, NEXT));
    first.leave();
    let mut back = Box::pin(async {
        first.enter().await;
        first
    });
    assert!(back.as_mut().now_or_never().is_none());
    let mut second = entering.await;
    assert!(second.is_inside);
    assert!(back.as_mut().now_or_never().is_none());
    second.leave();
    assert!(back.await.is_inside);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_stays_inside_holds_others_up_once() {
    let (_folder, mut stopped, mut other) = two();
    stopped.enter().await;
    // Time goes on by itself here, by as much as someone waits for.
    tokio::time::timeout(LONGEST_STAND * 2, other.enter()).await.unwrap();
    assert!(!other.is_inside);
    assert!(other.enter().now_or_never().is_some(), "it does not wait again");
    assert!(!other.is_inside);
    stopped.leave();
    soon(|| other.files.is(State::Idle));
    other.enter().await;
    assert!(other.is_inside);
}

#[tokio::test]
async fn a_writer_that_ends_leaves() {
    let (folder, mut first, mut second) = two();
    first.enter().await;
    assert!(second.enter().now_or_never().is_none());
    drop(second);
    drop(first);
    soon(|| !is_locked(&folder, LINE) && !is_locked(&folder, NEXT));
}
