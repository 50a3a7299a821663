//! Fast retransmit and the three kinds of recovery.

use crate::common::{Bench, CLIENT, Kind, SERVER, plain};
use base::Span;
use tcp::{Config, Repair};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

/// Twenty segments in an initial window of ten.
fn ten(repair: Repair) -> Bench {
    let config = Config { initial_window: 10, repair, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000).close(CLIENT);
    bench
}

#[test]
fn the_third_duplicate_acknowledgement_retransmits() {
    // RFC 5681 §3.2. Segments leave one a millisecond: the acknowledgement of segment k is back at 99 + k.
    for repair in [Repair::Reno, Repair::NewReno, Repair::Sack] {
        let config = Config { initial_window: 6, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.spacing = Span::from_ms(1);
        bench.write(CLIENT, 6_000).close(CLIENT).lose(CLIENT, Kind::Data, &[2]).run();
        // Segment 2 is missing; 3, 4 and 5 are the first three beyond it.
        assert_eq!(bench.flights(CLIENT), [(0, numbers(1, 6)), (104, vec![2])], "{repair:?}");
        assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
        bench.assert_complete(6_000, 0);
    }
}

#[test]
fn two_duplicates_are_not_enough() {
    for repair in [Repair::Reno, Repair::NewReno, Repair::Sack] {
        let config = Config { initial_window: 4, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 4_000).close(CLIENT).lose(CLIENT, Kind::Data, &[2]).run();
        // Segment 1 was acknowledged at 100: RFC 6298 §5.3, the timer runs a second from there.
        assert_eq!(bench.flights(CLIENT)[1].0, 1_100, "{repair:?}");
        bench.assert_complete(4_000, 0);
    }
}

#[test]
fn newreno_with_one_loss() {
    let mut bench = ten(Repair::NewReno);
    bench.lose(CLIENT, Kind::Data, &[1]).run();
    let expected = [
        (0, numbers(1, 10)),
        // The third of nine duplicates: ssthresh 5, cwnd 5 + 3; six more make it 14, ten of which are in flight.
        (100, vec![1, 11, 12, 13, 14]),
        // The acknowledgement of ten ends it: cwnd min(5, 4 + 1) with four in flight, then one for one.
        (200, numbers(15, 19)),
        (300, vec![20]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0);
    bench.assert_complete(20_000, 0);
}

#[test]
fn newreno_repairs_a_loss_a_round_trip() {
    // RFC 6582 §3.2.
    let mut bench = ten(Repair::NewReno);
    bench.lose(CLIENT, Kind::Data, &[1, 3]).run();
    let expected = [
        (0, numbers(1, 10)),
        // Eight duplicates: cwnd 5 + 3 + 5 = 13.
        (100, vec![1, 11, 12, 13]),
        // The partial acknowledgement of 2: the next hole; cwnd 13 - 2 + 1 = 12 of which 3..13 are eleven, and three
        // more duplicates.
        (200, vec![3, 14, 15, 16, 17]),
        (300, numbers(18, 20)),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 1);
    bench.assert_complete(20_000, 0);

    let mut bench = ten(Repair::NewReno);
    bench.lose(CLIENT, Kind::Data, &[1, 3, 5]).run();
    let resent = bench.times(CLIENT, Kind::Resent);
    assert_eq!(resent, [100, 200, 300]);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 1);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
    bench.assert_complete(20_000, 0);
}

#[test]
fn reno_halves_once_a_loss() {
    // RFC 5681 §3.2 without RFC 6582: the partial acknowledgement ends the recovery, and the three duplicates that
    // follow begin another.
    let mut bench = ten(Repair::Reno);
    bench.lose(CLIENT, Kind::Data, &[1, 3]).run();
    let expected = [
        (0, numbers(1, 10)),
        (100, vec![1, 11, 12, 13]),
        // Out of recovery at cwnd 5 with eleven in flight; 11, 12 and 13 are three duplicates: ssthresh 2.5.
        (200, vec![3]),
        // Everything to 13 is acknowledged: two segments fit.
        (300, vec![14, 15]),
        // 2.5 + 1/2.5 + 1/2.9 = 3.24: congestion avoidance.
        (400, numbers(16, 18)),
        (500, numbers(19, 20)),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 2);
    bench.assert_complete(20_000, 0);
}

#[test]
fn sack_with_one_loss() {
    // RFC 6675: after the third duplicate pipe is 10 - 3 - 1 + 1 = 7; it falls below cwnd = 5 with the sixth.
    let mut bench = ten(Repair::Sack);
    bench.lose(CLIENT, Kind::Data, &[1]).run();
    let expected = [(0, numbers(1, 10)), (100, vec![1, 11, 12, 13, 14]), (200, numbers(15, 19)), (300, vec![20])];
    assert_eq!(bench.flights(CLIENT), expected);
    bench.assert_complete(20_000, 0);
}

#[test]
fn sack_repairs_four_losses_in_one_round_trip() {
    let mut bench = ten(Repair::Sack);
    bench.lose(CLIENT, Kind::Data, &[1, 3, 5, 7]).run();
    let expected = [
        (0, numbers(1, 10)),
        // The reports of 2, 4, 6: 1 is lost, pipe 7. Of 8: 3 is lost, pipe 10 - 4 - 2 + 1 = 5. Of 9: 5 is lost, pipe
        // 10 - 5 - 3 + 1 = 3, room for two. Of 10: 7 is lost, pipe 10 - 6 - 4 + 3 = 3, room for it and one new.
        (100, vec![1, 3, 5, 7, 11]),
        (200, numbers(12, 16)),
        (300, numbers(17, 20)),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 1);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0);
    bench.assert_complete(20_000, 0);
}

#[test]
fn sack_with_two_and_three_losses_takes_one_round_trip_too() {
    for losses in [[2, 5].as_slice(), &[2, 3, 4], &[1, 2, 7]] {
        let mut bench = ten(Repair::Sack);
        bench.lose(CLIENT, Kind::Data, losses).run();
        let resent = bench.times(CLIENT, Kind::Resent);
        assert_eq!(resent, vec![100; losses.len()], "{losses:?}");
        assert_eq!(bench.ends[CLIENT].stats().recoveries, 1);
        bench.assert_complete(20_000, 0);
    }
}

#[test]
fn a_lost_retransmission_takes_the_timer() {
    for repair in [Repair::NewReno, Repair::Sack] {
        let mut bench = ten(repair);
        bench.lose(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Resent, &[1]).run();
        // The timer was started with the retransmission at 100, and no new data was acknowledged since.
        // With SACK 20 goes once more at 300, when nothing else is left to send (RFC 6675 §4, NextSeg rule 4).
        let expected = if repair == Repair::Sack { vec![100, 300, 1_100] } else { vec![100, 1_100] };
        assert_eq!(bench.times(CLIENT, Kind::Resent)[..expected.len()], expected, "{repair:?}");
        assert_eq!(bench.ends[CLIENT].stats().timeouts, 1);
        bench.assert_complete(20_000, 0);
    }
    // Everything beyond the hole was reported: it is all that is sent again.
    let mut bench = ten(Repair::Sack);
    bench.lose(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Resent, &[1]).run();
    assert_eq!(bench.times(CLIENT, Kind::Resent), [100, 300, 1_100]);
}

#[test]
fn limited_transmit_makes_the_third_duplicate() {
    // RFC 3042: three segments, the first lost. Each of two duplicates lets a new one out, and these make the third.
    for repair in [Repair::NewReno, Repair::Sack] {
        let config = Config { initial_window: 3, limited_transmit: true, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 5_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).run();
        assert_eq!(bench.flights(CLIENT), [(0, numbers(1, 3)), (100, vec![4, 5]), (200, vec![1])], "{repair:?}");
        assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
        bench.assert_complete(5_000, 0);
    }
}

#[test]
fn limited_transmit_does_not_count_as_flight() {
    // RFC 5681 §3.2 step 2 and RFC 6675 §5 step 4.2: ssthresh is half of the ten, not of the twelve.
    for repair in [Repair::NewReno, Repair::Sack] {
        let config = Config { initial_window: 10, limited_transmit: true, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 20_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).run();
        assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0, "{repair:?}");
        // The third duplicate finds twelve outstanding. NewReno: cwnd 8 + 6 = 14. SACK: pipe 12 - 3 falls to 3.
        assert_eq!(bench.flights(CLIENT)[1], (100, vec![11, 12, 1, 13, 14]), "{repair:?}");
        bench.assert_complete(20_000, 0);
    }
}

#[test]
fn without_limited_transmit_duplicates_send_nothing() {
    let config = Config { initial_window: 3, repair: Repair::Sack, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 5_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).run();
    assert_eq!(bench.flights(CLIENT)[..2], [(0, numbers(1, 3)), (1_000, vec![1])]);
}

#[test]
fn newreno_does_not_recover_twice_for_one_window() {
    // RFC 6582 §3.2 step 2. All ten arrived, but every acknowledgement takes 1.2 s more: the timer sends 1 again at
    // 1000, the late acknowledgements let 2 to 10 out again, and the receiver answers each with a duplicate. Those
    // say nothing about the new data in flight by then.
    let mut bench = ten(Repair::NewReno);
    bench.delay(SERVER, Kind::Ack, &(1..=11).collect::<Vec<_>>(), Span::from_ms(1_200)).run();
    let duplicates = bench.acks(SERVER).iter().filter(|ack| ack.1 == 10).count();
    assert!(duplicates > 3, "{duplicates}");
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 1);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 0);
    bench.assert_complete(20_000, 0);
}

#[test]
fn a_report_that_rides_on_data_counts() {
    // RFC 6675 §2: an acknowledgement with new SACK information is a duplicate, whatever else is in the segment. The
    // server sends a segment a millisecond, and its reports ride on them.
    let config = Config { initial_window: 10, repair: Repair::Sack, ..plain() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 10_000).lose(CLIENT, Kind::Data, &[1]);
    // Pure acknowledgements of the server are lost while the client's data arrives; what it writes is not.
    bench.lose(SERVER, Kind::Ack, &(1..=9).collect::<Vec<_>>());
    (0..4).for_each(|k| {
        bench.write_at(52 + 2 * k, SERVER, 1_000);
    });
    bench.run_to(1_000);
    // 2 and 3 are reported at 52 (with the arrival of 3 at 52), then two more each time: the second report makes
    // three above the hole, at 54 + 50.
    // The second is the rescue of 10 (RFC 6675 §4, NextSeg rule 4).
    let again: Vec<u64> = bench.packets(CLIENT, Kind::Resent).map(|p| (p.segment.seq - 1) / 1_000 + 1).collect();
    assert_eq!((again, bench.times(CLIENT, Kind::Resent)), (vec![1, 10], vec![104, 106]));
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 1);
}

#[test]
fn reordering_by_less_than_three_is_no_loss() {
    for repair in [Repair::NewReno, Repair::Sack] {
        let config = Config { initial_window: 8, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.spacing = Span::from_ms(1);
        bench.write(CLIENT, 8_000).close(CLIENT).delay(CLIENT, Kind::Data, &[3], Span::from_us(2_500)).run();
        assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0, "{repair:?}");
        bench.assert_complete(8_000, 0);
    }
}
