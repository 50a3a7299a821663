//! Recovery as ns-2's `Agent/TCP/Newreno` has it (ns-2.35, tcp-newreno.cc). It counts packets: [1, 10] are in `cwnd` =
//! 10. No round trip is known before a repair begins, so that the timer runs three seconds.

use crate::common::{Bench, CLIENT, Kind, stack};
use tcp::{Config, Repair};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

/// `segments` to send, `window` in the first window.
fn sending(segments: u64, window: u32, is_ns2: bool) -> Bench {
    let repair = if is_ns2 { Repair::Ns2NewReno } else { Repair::NewReno };
    let mut bench = Bench::new(&Config { mss: 1000, initial_window: window, repair, ..stack("ns2") });
    bench.write(CLIENT, segments * 1000).close(CLIENT);
    bench
}

#[test]
fn the_window_is_what_was_left_and_grows_at_once() {
    let mut bench = sending(60, 10, true);
    bench.lose(CLIENT, Kind::Data, &[1, 3]).run_to(300);
    let expected = [
        (0, numbers(1, 10)),
        // A new segment for each of the first two duplicates; the third leaves 5 and adds 3; with the other five the
        // window is 13.
        (100, vec![11, 12, 1, 13]),
        // 11 and 12 add one each; 1 completes 2: one segment goes out for it, and the window shrinks by one; 13.
        (200, vec![14, 15, 3, 16, 17]),
        // 14 and 15; 3 completes 15: the window is 5, and four are out. It grows by this one, by 16 and by 17.
        (300, vec![18, 19, 20, 21, 22]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    let grown = (0..3).fold(5.0, |window, _| window + 1.0 / window) * 1000.0;
    assert!((bench.ends[CLIENT].cwnd() - grown).abs() < 1e-6, "{}", bench.ends[CLIENT].cwnd());
    bench.run().assert_complete(60_000, 0);
}

#[test]
fn only_the_first_partial_acknowledgement_restarts_the_timer() {
    // One repair a round trip of 100 ms: 36 take longer than the timer.
    for (is_ns2, timeouts) in [(true, 1), (false, 0)] {
        let mut bench = sending(60, 40, is_ns2);
        bench.lose(CLIENT, Kind::Data, &(1..=36).collect::<Vec<_>>()).run();
        assert_eq!(bench.ends[CLIENT].stats().timeouts, timeouts, "ns-2: {is_ns2}");
        bench.assert_complete(60_000, 0);
    }
}

#[test]
fn the_window_goes_below_two_segments() {
    let mut bench = sending(20, 3, true);
    bench.lose(CLIENT, Kind::Data, &[1]).run_to(100);
    // 2 and 3, and with them 4 and 5.
    assert_eq!(bench.flights(CLIENT), [(0, numbers(1, 3)), (100, vec![4, 5])]);
    bench.run_to(200);
    // The third duplicate leaves 1.5, the fourth makes it 5.5: five are out already.
    assert_eq!(bench.flights(CLIENT)[2..], [(200, vec![1])]);
    bench.run_to(300);
    // 1 completes 5: 1.5, and less than the threshold of 2.
    assert_eq!(bench.flights(CLIENT)[3..], [(300, vec![6, 7])]);
    assert_eq!((bench.ends[CLIENT].cwnd(), bench.ends[CLIENT].ssthresh()), (2_500.0, 2_000.0));
    bench.run().assert_complete(20_000, 0);
}
