//! Marks as ns-2's agents answer them (ns-2.35, tcp.cc: ecn(), slowdown(), timeout(), newack()). A round trip takes ten
//! ticks of the timer; the first makes it 10 + 20 ticks long, a second like it 10 + 15, a third 10 + 12.

use crate::common::{Bench, CLIENT, Kind, stack};
use tcp::{Config, EcnMode, Repair};

const BOTH: [Repair; 2] = [Repair::Ns2NewReno, Repair::Ns2Sack1];

/// `segments` to send, so many of them in the first window.
fn sending(segments: u64, initial_window: u32, repair: Repair) -> Bench {
    let mut bench = Bench::new(&Config { mss: 1000, initial_window, repair, ecn: EcnMode::On, ..stack("ns2") });
    bench.write(CLIENT, segments * 1000).close(CLIENT);
    bench
}

#[test]
fn less_than_a_segment_waits_for_the_timer() {
    for repair in BOTH {
        let mut bench = sending(20, 3, repair);
        // The first mark leaves 1.5 segments, the second 0.75.
        bench.mark(CLIENT, Kind::Data, &[1, 4]).run_to(550);
        let expected = [(0, vec![1, 2, 3]), (100, vec![4]), (450, vec![5]), (550, vec![6, 7])];
        assert_eq!(bench.flights(CLIENT), expected, "{repair:?}");
        assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
        bench.run().assert_complete(20_000, 0);
    }
}

#[test]
fn echoes_at_a_window_of_one_double_the_timeout() {
    for repair in BOTH {
        let mut bench = sending(20, 1, repair);
        bench.mark(CLIENT, Kind::Data, &[1, 2, 3]).run_to(2_080);
        let expected = [
            (0, vec![1]),
            // The first echo: 30 ticks.
            (400, vec![2]),
            // The second doubles 25 of them, and the third 22 twice.
            (1_000, vec![3]),
            (1_980, vec![4]),
            // No echo: the window is two segments.
            (2_080, vec![5, 6]),
        ];
        assert_eq!(bench.flights(CLIENT), expected, "{repair:?}");
        bench.run().assert_complete(20_000, 0);
    }
}

#[test]
fn an_acknowledgement_without_an_echo_ends_the_back_off() {
    for repair in BOTH {
        let mut bench = sending(20, 1, repair);
        bench.mark(CLIENT, Kind::Data, &[1, 3]).run_to(900);
        // 2 lets the window grow to two: the mark of 3 leaves one, and 4 has been sent with 3.
        let expected = [(0, vec![1]), (400, vec![2]), (500, vec![3, 4]), (600, vec![5])];
        assert_eq!(bench.flights(CLIENT)[..4], expected, "{repair:?}");
        bench.run().assert_complete(20_000, 0);
    }
}

#[test]
fn a_timeout_after_a_mark_leaves_the_threshold() {
    for repair in BOTH {
        let mut bench = sending(20, 10, repair);
        let lost: Vec<usize> = (2..=10).collect();
        bench.mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &lost).run_to(400);
        assert_eq!(bench.flights(CLIENT)[1..], [(400, vec![2])], "{repair:?}");
        assert_eq!((bench.ends[CLIENT].ssthresh(), bench.ends[CLIENT].cwnd()), (5_000.0, 1_000.0));
        bench.run().assert_complete(20_000, 0);
    }
}

#[test]
fn the_first_echo_after_a_timeout_reduces_the_window() {
    for repair in BOTH {
        let mut bench = sending(20, 10, repair);
        let lost: Vec<usize> = (1..=10).collect();
        bench.mark(CLIENT, Kind::Resent, &[1]).lose(CLIENT, Kind::Data, &lost).run_to(9_200);
        // Half a segment is left. The timer was backed off to 6 s, and no round trip was measured since.
        let expected = [(3_000, vec![1]), (9_100, vec![2]), (9_200, vec![3, 4])];
        assert_eq!(bench.flights(CLIENT)[1..], expected, "{repair:?}");
        assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, 1);
        bench.run().assert_complete(20_000, 0);
    }
}

#[test]
fn a_loss_after_a_mark_in_one_window_is_repaired_without_another_reduction() {
    for repair in BOTH {
        let mut bench = sending(20, 10, repair);
        bench.mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &[2]).run_to(199);
        assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0, "{repair:?}");
        let stats = bench.ends[CLIENT].stats();
        assert_eq!((stats.recoveries, stats.ecn_reductions), (1, 1));
        bench.run().assert_complete(20_000, 0);
    }
}

#[test]
fn an_echo_of_what_was_sent_in_a_recovery_reduces_the_window_once_more() {
    for repair in BOTH {
        let mut bench = sending(60, 10, repair);
        // The first segment is sent again; 11 and 12 left before that, and 13 after it.
        bench.lose(CLIENT, Kind::Data, &[1]).mark(CLIENT, Kind::Data, &[13]).run_to(400);
        let stats = bench.ends[CLIENT].stats();
        assert_eq!((stats.recoveries, stats.ecn_reductions), (1, 1), "{repair:?}");
        assert_eq!(bench.ends[CLIENT].ssthresh(), 2_000.0, "{repair:?}");
        bench.run().assert_complete(60_000, 0);
    }
}
