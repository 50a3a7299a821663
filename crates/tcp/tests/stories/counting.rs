//! NewReno where the window comes down gradually: each duplicate stands for a segment that arrived (Linux,
//! tcp_input.c).

use crate::common::{Bench, CLIENT, Kind, SERVER, plain};
use base::Span;
use tcp::{Config, Reduction, Repair};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

/// An initial window of ten.
fn counting() -> Config {
    Config {
        repair: Repair::NewReno,
        reduction: Reduction::Proportional,
        limited_transmit: true,
        initial_window: 10,
        ..plain()
    }
}

#[test]
fn duplicates_let_out_what_left_the_network() {
    let mut bench = Bench::new(&counting());
    bench.write(CLIENT, 20_000).lose(CLIENT, Kind::Data, &[1]).run();
    let expected = [
        (0, numbers(1, 10)),
        // Nine duplicates. Limited transmit for the first two; the third begins to halve ten. RFC 6937, ssthresh 5:
        // after k of them in recovery ceil(k / 2) may have been sent, 1 at the first, 13 at the third, 14 at the
        // fifth; at the seventh five are out, of 14 with nine that arrived and one lost and sent again.
        (100, vec![11, 12, 1, 13, 14]),
        // Two duplicates, of 11 and 12, one each. The repair acknowledges all of the first twelve, which is all that
        // was out when it began: it counts as one, and lets 17 out, but the recovery goes on. What acknowledges 13
        // ends it, and the window of five moves on.
        (200, numbers(15, 19)),
        (300, vec![20]),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.recoveries, stats.timeouts, bench.ends[CLIENT].ssthresh()), (1, 0, 5_000.0));
}

#[test]
fn a_partial_acknowledgement_repairs_the_next_hole() {
    // RFC 6582 §3.2 step 3, one hole a round trip. Segments are a millisecond apart: 3, 4 and 6 arrive at 52, 53 and
    // 55, and the third duplicate is back at 105. What 5 and 8 wait for is the repair before them.
    let mut bench = Bench::new(&counting());
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 10_000).lose(CLIENT, Kind::Data, &[2, 5, 8]).run();
    assert_eq!(bench.flights(CLIENT), [(0, numbers(1, 10)), (105, vec![2]), (205, vec![5]), (305, vec![8])]);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
}

#[test]
fn the_first_segment_after_data_is_no_duplicate() {
    // tcp_may_update_window: it tells of the window, being the first with its sequence number. Three segments beyond
    // the lost one make three duplicates, but the third that counts is missing: the timer, a second after 5.
    let config = Config { initial_window: 4, ..counting() };
    let story = |asks: u64| {
        let mut bench = Bench::new(&config);
        bench.spacing = Span::from_ms(1);
        if asks > 0 {
            bench.write_at(0, SERVER, asks);
        }
        bench.write_at(200, CLIENT, 4_000).lose(CLIENT, Kind::Data, &[1]).run();
        bench.times(CLIENT, Kind::Resent)
    };
    assert_eq!(story(0), [303]);
    assert_eq!(story(300), [1_200]);
}
