//! Recovery as ns-2's `Agent/TCP/Sack1` has it (ns-2.35, tcp-sack1.cc). It counts packets: [1, 10] are in `cwnd` = 10.
//! Nothing that was sent once is acknowledged before a repair begins, so that no round trip is known and the timer
//! runs three seconds.

use crate::common::{Bench, CLIENT, Kind, Packet, SERVER, stack};
use base::Span;
use tcp::{Config, EcnMode, Flags};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

/// `segments` to send, ten in the first window.
fn ten(segments: u64) -> Bench {
    let mut bench = Bench::new(&Config { mss: 1000, initial_window: 10, ..stack("ns2") });
    bench.write(CLIENT, segments * 1000).close(CLIENT);
    bench
}

#[test]
fn half_of_the_window_without_growth_at_the_end() {
    let mut bench = ten(60);
    bench.lose(CLIENT, Kind::Data, &[1]).run_to(200);
    let expected = [
        (0, numbers(1, 10)),
        // A new segment for each of the first two reports. The third: cwnd 5, pipe 12 - 3. Six more reports bring it to
        // 3, but from 4 on each lets a new segment out.
        (100, vec![11, 12, 1, 13, 14]),
        // So do 11 and 12. The repair completes 12: four are out, and the window is still 5. 13, which is the first
        // that tells a round trip, and 14 make it 5.4.
        (200, vec![15, 16, 17, 18, 19]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0);
    assert_eq!(bench.ends[CLIENT].srtt(), Some(Span::from_ms(100)));
    let grown = 5_200.0 + 1e6 / 5_200.0;
    assert!((bench.ends[CLIENT].cwnd() - grown).abs() < 1e-6, "{}", bench.ends[CLIENT].cwnd());
    bench.run().assert_complete(60_000, 0);
}

#[test]
fn a_partial_acknowledgement_says_that_two_have_left() {
    let mut bench = ten(60);
    bench.lose(CLIENT, Kind::Data, &[1, 3, 5, 7]).run_to(300);
    let expected = [
        (0, numbers(1, 10)),
        // 2 and 4 let new ones out, 6 begins: pipe 9; 8, 9 and 10 make it 6.
        (100, vec![11, 12, 1]),
        // 11 and 12: pipe 4, one gap. 1 is partial: 5 - 2, two gaps.
        (200, vec![3, 5, 7]),
        // 3 and 5 are partial, two segments each; 7 completes 12: four are out.
        (300, numbers(13, 17)),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.recoveries, stats.timeouts), (1, 0));
    bench.run().assert_complete(60_000, 0);
}

#[test]
fn nothing_goes_with_the_first_repair() {
    // Segments leave one a millisecond: segment k is reported at 99 + k. The third is 5: pipe 7 - 3, below the window
    // of 5; yet the other gap waits for the next.
    let mut bench = ten(7);
    bench.spacing = Span::from_ms(1);
    bench.lose(CLIENT, Kind::Data, &[1, 3]).run();
    assert_eq!(bench.flights(CLIENT), [(0, numbers(1, 7)), (104, vec![1]), (105, vec![3])]);
    bench.assert_complete(7_000, 0);
}

#[test]
fn one_report_above_a_gap_is_enough_in_recovery() {
    // 4 begins; 5 to 8 make pipe 5; then 10 is reported and 9 is not. RFC 6675 would send 13.
    let mut bench = ten(60);
    bench.lose(CLIENT, Kind::Data, &[1, 9]).run_to(100);
    assert_eq!(bench.flights(CLIENT)[1], (100, vec![11, 12, 1, 9]));
    bench.run().assert_complete(60_000, 0);
}

#[test]
fn a_gap_is_repaired_once_and_a_timeout_repeats_what_was_reported() {
    let mut bench = ten(12);
    bench.lose(CLIENT, Kind::Data, &[1, 5]).lose(CLIENT, Kind::Resent, &[1, 2]).run();
    let expected = [
        (0, numbers(1, 10)),
        // The reports of 11 and 12 at 200 bring pipe to 3, but both gaps had their turn.
        (100, vec![11, 12, 1, 5]),
        // The window was 5: half of it is 2.
        (3_100, vec![1]),
        // 2 to 4 had arrived; so had 6.
        (3_200, vec![5, 6]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 2_000.0);
    bench.assert_complete(12_000, 0);
}

#[test]
fn no_recovery_before_all_is_acknowledged_that_was_out_at_the_timeout() {
    let mut bench = ten(40);
    bench.lose(CLIENT, Kind::Data, &numbers(1, 10).iter().map(|&n| n as usize).collect::<Vec<_>>());
    bench.lose(CLIENT, Kind::Resent, &[4]).run_to(9_300);
    let expected = [
        (0, numbers(1, 10)),
        (3_000, vec![1]),
        (3_100, vec![2, 3]),
        (3_200, numbers(4, 7)),
        // 5 and 6 are reported, and two more go out; the report of 7 is the third and does nothing, nor do those of 8
        // and 9 at 3,400.
        (3_300, vec![8, 9]),
        // Nothing sent for the first time was acknowledged: the timer runs 6 s from 3,200. The window was 4.
        (9_200, vec![4]),
        // All to 9.
        (9_300, vec![10, 11]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.recoveries, stats.timeouts), (0, 2));
    assert_eq!(bench.ends[CLIENT].ssthresh(), 2_000.0);
    bench.run().assert_complete(40_000, 0);
}

#[test]
fn nor_when_exactly_that_is_acknowledged() {
    let mut bench = ten(40);
    bench.lose(CLIENT, Kind::Data, &numbers(1, 11).iter().map(|&n| n as usize).collect::<Vec<_>>()).run_to(9_400);
    let expected = [
        (3_300, numbers(8, 12)),
        // 8, 9, 10: the window is 6.1. 12 is reported, and lets one more out.
        (3_400, numbers(13, 17)),
        // So is 13; then 14 to 17, and 18 at 3,600. The timer runs from 3,400.
        (3_500, vec![18]),
        (9_400, vec![11]),
    ];
    assert_eq!(bench.flights(CLIENT)[4..], expected);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 0);
    bench.run().assert_complete(40_000, 0);
}

#[test]
fn what_was_sent_in_a_recovery_may_begin_the_next() {
    // 1 as above; 13, the first segment sent in its recovery, is lost too.
    let mut bench = ten(60);
    bench.lose(CLIENT, Kind::Data, &[1, 13]).run_to(300);
    let expected = [
        (100, vec![11, 12, 1, 13, 14]),
        // 11 and 12; the end with four out; 14 is reported: one more than the window of 5.
        (200, vec![15, 16, 17, 18]),
        // So is 15; the third is 16: cwnd 2.5, pipe 7 - 3, and 17 and 18 make it 2.
        (300, vec![19, 13]),
    ];
    assert_eq!(bench.flights(CLIENT)[1..], expected);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 2);
    bench.run().assert_complete(60_000, 0);
}

#[test]
fn a_partial_acknowledgement_restarts_the_timer() {
    // The report of 10 lets 3 out, which is lost again. The repair of 1 is acknowledged at 200.
    let mut bench = ten(12);
    bench.lose(CLIENT, Kind::Data, &[1, 3]).lose(CLIENT, Kind::Resent, &[2]).run();
    assert_eq!(bench.flights(CLIENT)[1..], [(100, vec![11, 12, 1, 3]), (3_200, vec![3])]);
    bench.assert_complete(12_000, 0);
}

#[test]
fn reports_before_the_timer_s_repair_arrives_are_ignored() {
    // Nine reports at 3,050, half a round trip after the timer.
    let mut bench = ten(40);
    bench.lose(CLIENT, Kind::Data, &[1]);
    bench.delay(SERVER, Kind::Ack, &(1..10).collect::<Vec<_>>(), Span::from_ms(2_950)).run_to(3_100);
    assert_eq!(bench.flights(CLIENT)[1..], [(3_000, vec![1]), (3_100, vec![11, 12])]);
    bench.run().assert_complete(40_000, 0);
}

#[test]
fn the_window_is_halved_to_less_than_two() {
    let mut bench = Bench::new(&Config { mss: 1000, ..stack("ns2") });
    bench.write(CLIENT, 20_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).run_to(500);
    let expected = [
        (0, vec![1, 2]),
        // Limited transmit keeps the reports coming.
        (100, vec![3]),
        (200, vec![4]),
        (300, vec![1]),
        // One, as the recovery has left it, and two after the next acknowledgement: the threshold is 2.
        (400, vec![5]),
        (500, vec![6, 7]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    bench.run().assert_complete(20_000, 0);
}

#[test]
fn a_loss_in_a_window_that_an_echo_halved_is_repaired_without_another() {
    let config = Config { mss: 1000, initial_window: 10, ecn: EcnMode::On, ..stack("ns2") };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 60_000).close(CLIENT).mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &[2]).run_to(200);
    let expected = [
        (0, numbers(1, 10)),
        // 1 is echoed: cwnd 5 with nine out. The report of 5 begins: pipe 6; from that of 7 on one goes out for each.
        (100, vec![2, 11, 12, 13, 14]),
        // What completes the repair still has the echo, for 11 tells of the reduction; it is of the same window.
        (200, numbers(15, 19)),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.recoveries, stats.ecn_reductions), (1, 1));
    assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0);
    bench.run().assert_complete(60_000, 0);
}

#[test]
fn what_has_no_full_segments_is_repaired_too() {
    // Ten segments of 100 bytes and a FIN: boundaries are kept, also when everything is sent again.
    for lost in [vec![1], vec![10], vec![9, 10], (1..=10).collect()] {
        let mut bench = Bench::new(&Config { mss: 1000, initial_window: 10, ..stack("ns2") });
        for k in 0..10 {
            bench.write_at(k, CLIENT, 100);
        }
        bench.close_at(9, CLIENT).lose(CLIENT, Kind::Data, &lost).run();
        let is_whole = |packet: &Packet| packet.segment.payload == 100 || packet.segment.flags.has(Flags::FIN);
        assert!(bench.packets(CLIENT, Kind::Resent).all(is_whole), "{lost:?}");
        bench.assert_complete(1_000, 0);
    }
}
