use jobs_core::StoreErrorKind;

use super::*;

const NOW: Duration = Duration::from_secs(1_000);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Two looks that took so long, the last of which was sent now.
async fn looked(took: Duration) -> Looks {
    let mut looks = Looks::default();
    for sent_at in [NOW.saturating_sub(took), NOW] {
        assert_eq!(looks.rest(sent_at), Duration::ZERO, "a single one is followed by no pause");
        looks.begin(sent_at, async move { (Ok(Vec::new()), sent_at + took) });
        assert!(looks.is_running());
        looks.ended().await;
    }
    looks
}

#[tokio::test]
async fn cheap_looks_follow_each_other_soon_and_dear_ones_do_not() {
    for (took, pause) in [(0, 0), (1, 20), (12, 240), (70, 250), (600, 600)] {
        let looks = looked(ms(took)).await;
        assert_eq!(looks.rest(NOW + ms(took)), ms(pause), "{took} ms");
        assert_eq!(looks.rest(NOW + ms(took + pause)), Duration::ZERO);
    }
}

#[tokio::test]
async fn a_busy_worker_looks_four_times_a_second_and_sooner_when_woken() {
    let mut looks = looked(ms(1)).await;
    assert!(!looks.is_due(NOW + ms(250)) && looks.is_due(NOW + ms(251)));
    looks.woken();
    assert!(!looks.is_due(NOW + ms(50)) && looks.is_due(NOW + ms(51)));
    assert!(!looks.is_overdue(NOW + ms(499)) && looks.is_overdue(NOW + ms(500)));
    let dear = looked(ms(600)).await;
    assert!(!dear.is_overdue(NOW + ms(1_199)) && dear.is_overdue(NOW + ms(1_200)));
}

#[tokio::test]
async fn a_look_is_of_now_unless_something_came_or_was_claimed_since() {
    let seen = |looks: &mut Looks| looks.take().expect("it is over").expect("it saw");
    assert!(seen(&mut looked(ms(1)).await).is_of_now);
    for change in [Looks::claimed, Looks::woken] {
        let mut looks = Looks::default();
        looks.begin(NOW, async { (Ok(Vec::new()), NOW) });
        change(&mut looks);
        looks.ended().await;
        assert!(!seen(&mut looks).is_of_now);
    }
}

#[tokio::test]
async fn a_look_that_fails_is_told_once_and_followed_by_a_pause() {
    let mut looks = looked(ms(30_000)).await;
    let error = StoreError::new(StoreErrorKind::Busy, "it took too long");
    looks.begin(NOW, async { (Err(error), NOW + ms(30_000)) });
    looks.ended().await;
    assert!(looks.take().is_some_and(|seen| seen.is_err()) && looks.take().is_none());
    assert_eq!(looks.rest(NOW + ms(30_000)), ms(30_000));
}

#[tokio::test]
async fn one_that_is_given_up_says_nothing() {
    let mut looks = Looks::default();
    looks.begin(NOW, std::future::pending());
    looks.close().await;
    assert!(looks.take().is_none() && !looks.is_running());
}

#[tokio::test]
#[should_panic(expected = "a bug of the store")]
async fn a_panic_of_one_is_a_panic_of_its_worker() {
    let mut looks = Looks::default();
    looks.begin(NOW, async { panic!("a bug of the store") });
    looks.ended().await;
}
