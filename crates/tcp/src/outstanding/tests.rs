//! What becomes of ten segments.

use super::*;

fn ten() -> Outstanding {
    let mut sent = Outstanding::new(false);
    for k in 0..10 {
        sent.push(1 + k * 100, 100, false, Time::from_ns(k));
    }
    sent
}

fn blocks(ack: u64, ranges: &[(u64, u64)]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for &(start, end) in ranges {
        blocks.push(start - ack, end - ack);
    }
    blocks
}

#[test]
fn three_above_make_a_loss() {
    let mut sent = ten();
    assert_eq!(sent.selective(&blocks(1, &[(101, 301)]), 1), 200);
    sent.detect_losses();
    assert_eq!(sent.next_lost().map(|r| r.seq), None);
    assert_eq!(sent.selective(&blocks(1, &[(101, 401)]), 1), 100);
    sent.detect_losses();
    assert_eq!(sent.next_lost().map(|r| r.seq), Some(1));
    assert_eq!(sent.pipe(1000), 600);
    sent.resent(Time::from_ns(99));
    assert_eq!(sent.pipe(1000), 700);
    assert_eq!(sent.next_lost().map(|r| r.seq), None);
    assert_eq!(sent.acknowledge(401), None);
    assert_eq!(sent.pipe(600), 600);
    assert_eq!(sent.acknowledge(501), Some(Time::from_ns(4)));
}

#[test]
fn a_timeout_loses_what_was_not_reported() {
    let mut sent = ten();
    sent.selective(&blocks(1, &[(201, 401)]), 1);
    sent.lose_all();
    assert_eq!(sent.pipe(1000), 0);
    let mut order = vec![];
    while let Some(record) = sent.next_lost() {
        order.push(record.seq);
        sent.resent(Time::ZERO);
    }
    assert_eq!(order, [1, 101, 401, 501, 601, 701, 801, 901]);
    assert_eq!(sent.pipe(1000), 800);
}

#[test]
fn a_late_arrival_is_no_loss() {
    let mut sent = ten();
    sent.selective(&blocks(1, &[(101, 401)]), 1);
    sent.detect_losses();
    // Reordered, not lost: it is reported after all.
    sent.selective(&blocks(1, &[(101, 501)]), 1);
    assert_eq!(sent.acknowledge(501), None);
    assert_eq!(sent.pipe(500), 500);
}

#[test]
fn what_was_ever_lost_stays_known_to_who_samples_the_rate() {
    // A controller that models the path subtracts totals of lost segments: they never fall.
    let mut sent = Outstanding::new(true);
    sent.sampler = Some(Box::new(Sampler::new(100)));
    for k in 0..10 {
        sent.push(1 + k * 100, 100, false, Time::from_ns(k));
    }
    sent.lose_all();
    assert_eq!(sent.acknowledge(1_001), None);
    sent.rest();
    assert_eq!((sent.ever_lost(), sent.pipe(0), sent.has_lost()), (10, 0, false));
}

#[test]
#[should_panic(expected = "what is outstanding is kept")]
fn what_is_outstanding_is_never_given_back() {
    ten().rest();
}
