use super::*;

fn share(name: &str, weight: u32) -> Share {
    Share { queue: QueueName::new(name).unwrap(), weight, most: None, most_in_fleet: None }
}

fn running(counts: &[(&str, usize)]) -> Running {
    let running = Running::default();
    for (queue, count) in counts {
        for _ in 0..*count {
            running.begin(&QueueName::new(queue).unwrap());
        }
    }
    running
}

fn given(offers: &[Offer]) -> Vec<(&str, u32)> {
    offers.iter().map(|offer| (offer.queue.as_str(), offer.limit)).collect()
}

#[test]
fn each_queue_is_offered_its_share_first_and_then_what_is_lent() {
    let shares = [share("a", 3), share("b", 1)];
    let offers = offers(&shares, &running(&[]), 8, 8);
    assert_eq!(given(&offers), [("a", 6), ("b", 2), ("a", 7), ("b", 7)]);
}

#[test]
fn a_queue_without_work_lends_all_but_its_last_slot() {
    let shares = [share("slow", 1), share("fast", 1)];
    // Only `slow` has work: it takes its share, then borrows.
    assert_eq!(
        given(&offers(&shares, &running(&[("slow", 4)]), 8, 4)),
        [("fast", 4), ("fast", 4), ("slow", 3)]
    );
    let full = running(&[("slow", 7)]);
    assert_eq!(given(&offers(&shares, &full, 8, 1)), [("fast", 1), ("fast", 1)]);
}

#[test]
fn the_queue_with_the_smallest_part_of_its_share_goes_first() {
    let shares = [share("a", 4), share("b", 1)];
    let running = running(&[("a", 4), ("b", 2)]);
    assert_eq!(given(&offers(&shares, &running, 10, 4))[0], ("a", 4));
}

#[test]
fn a_queue_never_gets_more_than_its_own_most() {
    let mut shares = [share("a", 1), share("b", 1)];
    shares[0].most = Some(3);
    let two = running(&[("a", 2), ("b", 1)]);
    assert_eq!(given(&offers(&shares, &two, 10, 7)), [("b", 4), ("a", 1), ("b", 7), ("a", 1)]);
    let three = running(&[("a", 3), ("b", 1)]);
    assert_eq!(given(&offers(&shares, &three, 10, 6)), [("b", 4), ("b", 6)]);
}

#[test]
fn fewer_slots_than_queues_are_never_held_back() {
    let shares = [share("a", 1), share("b", 1), share("c", 1)];
    let one = running(&[("a", 1)]);
    assert_eq!(
        given(&offers(&shares, &one, 2, 1)),
        [("b", 1), ("c", 1), ("b", 1), ("c", 1), ("a", 1)]
    );
}

#[test]
fn a_run_that_ended_is_counted_out_once() {
    let queue = QueueName::new("a").unwrap();
    let running = running(&[("a", 1)]);
    running.end(&queue);
    running.end(&queue);
    running.begin(&queue);
    assert_eq!(running.of(&[share("a", 1)]), [1]);
}
