//! The retransmission timer: RFC 6298, and what is sent when it expires.

use crate::common::{Bench, CLIENT, Kind, SERVER, at_ms, plain, stack};
use base::Span;
use tcp::{Config, Repair, RttSampling};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

#[test]
fn the_timer_doubles_until_the_connection_is_given_up() {
    // RFC 6298 §5.5 with one second at first and sixty at most; twelve retries (BSD's TCP_MAXRXTSHIFT).
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 1_000).lose(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Resent, &(1..20).collect::<Vec<_>>());
    bench.run();
    let expected = [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363, 423].map(|s| s * 1000);
    assert_eq!(bench.times(CLIENT, Kind::Resent), expected);
    assert!(bench.ends[CLIENT].is_aborted());
    assert_eq!(bench.now, at_ms(483_000));
}

#[test]
fn twelve_losses_in_a_row_are_survived() {
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 1_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]);
    bench.lose(CLIENT, Kind::Resent, &(1..=11).collect::<Vec<_>>()).run();
    bench.assert_complete(1_000, 0);
}

#[test]
fn each_acknowledgement_of_new_data_restarts_the_timer() {
    // RFC 6298 §5.3: the second segment leaves at 50 and is lost; the first is acknowledged at 100.
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 1_000).write_at(50, CLIENT, 1_000).lose(CLIENT, Kind::Data, &[2]).run_to(200);
    assert_eq!(bench.ends[CLIENT].next_wake(), at_ms(1_100));
    bench.run_to(1_150);
    assert_eq!(bench.times(CLIENT, Kind::Resent), [1_100]);
    // RFC 6298 §5.2: nothing outstanding, no timer.
    bench.run_to(1_200);
    assert!(!bench.ends[CLIENT].next_wake().is_set());
}

#[test]
fn the_timeout_follows_the_round_trips() {
    // RFC 6298 §2: 100 ms gives 100 + 4 x 50 = 300; then 140 gives RTTVAR 0.75 x 50 + 0.25 x 40 = 47.5, SRTT
    // 0.875 x 100 + 0.125 x 140 = 105, RTO 105 + 190 = 295.
    for rtt_sampling in [RttSampling::EveryAck, RttSampling::OnePerWindow] {
        let config = Config { rto_min: Span::ZERO, rtt_sampling, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 1_000).write_at(1_000, CLIENT, 1_000).write_at(2_000, CLIENT, 1_000);
        bench.delay(CLIENT, Kind::Data, &[2], Span::from_ms(40)).lose(CLIENT, Kind::Data, &[3]).run_to(2_300);
        assert_eq!(bench.times(CLIENT, Kind::Resent), [2_295], "{rtt_sampling:?}");
    }
}

#[test]
fn a_segment_sent_twice_is_not_measured() {
    // Karn: no sample, and the back-off stays until there is one. The round trip is then 100 ms and the timeout at
    // its floor of one second.
    let config = Config { rtt_sampling: RttSampling::OnePerWindow, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 1_000).lose(CLIENT, Kind::Data, &[1]).run_to(1_500);
    assert_eq!(bench.ends[CLIENT].srtt(), None);
    bench.write_at(2_000, CLIENT, 1_000).lose(CLIENT, Kind::Data, &[2]).run_to(4_500);
    assert_eq!(bench.times(CLIENT, Kind::Resent), [1_000, 4_000]);
    bench.write_at(10_000, CLIENT, 1_000).run_to(10_500);
    assert_eq!(bench.ends[CLIENT].srtt(), Some(Span::from_ms(100)));
    bench.write_at(11_000, CLIENT, 1_000).lose(CLIENT, Kind::Data, &[4]).run_to(12_500);
    assert_eq!(bench.times(CLIENT, Kind::Resent), [1_000, 4_000, 12_000]);
}

#[test]
fn what_waited_behind_a_hole_is_not_measured() {
    // The acknowledgement that the repaired hole 2 lets go covers segments received 100 ms before: their age is not
    // a round trip.
    for rtt_sampling in [RttSampling::EveryAck, RttSampling::OnePerWindow] {
        for repair in [Repair::NewReno, Repair::Sack] {
            let config = Config { initial_window: 6, rtt_sampling, repair, ..plain() };
            let mut bench = Bench::new(&config);
            bench.write(CLIENT, 6_000).close(CLIENT).lose(CLIENT, Kind::Data, &[2]).run();
            assert_eq!(bench.ends[CLIENT].srtt(), Some(Span::from_ms(100)), "{rtt_sampling:?} {repair:?}");
        }
    }
}

#[test]
fn a_lost_tail_takes_the_timer_and_goes_back() {
    let tail = |repair, losses: &[usize]| {
        let config = Config { initial_window: 4, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 4_000).close(CLIENT).lose(CLIENT, Kind::Data, losses).run();
        bench.assert_complete(4_000, 0);
        bench.flights(CLIENT)[1..].to_vec()
    };
    for repair in [Repair::Reno, Repair::NewReno, Repair::Sack] {
        // The last acknowledgement comes at 100.
        assert_eq!(tail(repair, &[4]), [(1_100, vec![4])]);
        assert_eq!(tail(repair, &[3, 4]), [(1_100, vec![3]), (1_200, vec![4])]);
        // RFC 5681 §3.1: one segment, then slow start.
        assert_eq!(tail(repair, &[2, 3, 4]), [(1_100, vec![2]), (1_200, numbers(3, 4))]);
        // Nothing was acknowledged: the timer of the first segment.
        assert_eq!(tail(repair, &[1, 2, 3, 4]), [(1_000, vec![1]), (1_100, numbers(2, 3)), (1_200, vec![4])]);
    }
    // 4 arrived. Without reports it is sent again with all the others; with them it is not.
    assert_eq!(tail(Repair::NewReno, &[2, 3]), [(1_100, vec![2]), (1_200, numbers(3, 4))]);
    assert_eq!(tail(Repair::Sack, &[2, 3]), [(1_100, vec![2]), (1_200, vec![3])]);
}

#[test]
fn a_timeout_starts_over_from_one_segment() {
    // RFC 5681 §3.1: ssthresh half of what was in flight, cwnd one segment, slow start up to the threshold.
    let config = Config { initial_window: 8, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 30_000).close(CLIENT).lose(CLIENT, Kind::Data, &(1..=8).collect::<Vec<_>>()).run();
    let flights = bench.flights(CLIENT);
    let expected = [
        (0, numbers(1, 8)),
        (1_000, vec![1]),
        (1_100, numbers(2, 3)),
        (1_200, numbers(4, 7)),
        // The threshold of four is reached: 4 + 1/4 + ... = 4.96 after four acknowledgements. Then 8 is repaired.
        (1_300, numbers(8, 11)),
    ];
    assert_eq!(flights[..5], expected);
    bench.assert_complete(30_000, 0);
}

#[test]
fn the_threshold_falls_once_for_a_segment_and_again_for_another() {
    // RFC 5681 §3.1: held while the same segment times out again, set anew when another does, from no more than the
    // window then in use.
    for rtt_sampling in [RttSampling::EveryAck, RttSampling::OnePerWindow] {
        let config = Config { initial_window: 40, rtt_sampling, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 40_000).lose(CLIENT, Kind::Data, &(1..=40).collect::<Vec<_>>());
        // The second copy of segment 1 is lost too, and of the flight 4..7 at 3200 the first.
        bench.lose(CLIENT, Kind::Resent, &[1, 5]).run_to(3_200);
        assert_eq!(
            bench.flights(CLIENT)[1..],
            [(1_000, vec![1]), (3_000, vec![1]), (3_100, numbers(2, 3)), (3_200, numbers(4, 7)),]
        );
        assert_eq!(bench.ends[CLIENT].ssthresh(), 20_000.0);
        bench.run_to(10_000);
        assert_eq!(bench.ends[CLIENT].stats().timeouts, 3);
        assert_eq!(bench.ends[CLIENT].ssthresh(), 2_000.0, "{rtt_sampling:?}");
    }
}

#[test]
fn after_a_timeout_an_acknowledgement_opens_one_segment() {
    // RFC 3465 §2.3: what was held beyond the hole is acknowledged in one go; slow start does not take that for
    // leave to send as much again.
    let config = Config { initial_window: 20, repair: Repair::Sack, byte_counting: true, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 300_000).lose(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Resent, &[1]);
    bench.run_to(1_199);
    assert_eq!(bench.ends[CLIENT].cwnd(), 1_000.0);
    bench.run_to(1_200);
    assert_eq!(bench.flights(CLIENT).last().map(|flight| flight.1.len()), Some(2));
}

#[test]
fn coarse_clocks_time_out_on_the_tick() {
    // FreeBSD's 10 ms and one second at least: 100 ms round trips leave the floor. The handshake's sample is 100 ms.
    let mut bench = Bench::new(&stack("freebsd4"));
    bench.write(CLIENT, 100).answer(SERVER, 100, 1_000, true).lose(SERVER, Kind::Data, &[1]).run();
    assert_eq!(bench.times(SERVER, Kind::Resent), [1_150]);
    bench.assert_complete(100, 1_000);
    // Linux adds its 200 ms to the smoothed round trip, 100 + max(4 x 50, 200), and the slot of its timer wheel is 8
    // ms.
    let mut bench = Bench::new(&stack("linux"));
    bench.write(CLIENT, 100).answer(SERVER, 100, 1_000, true).lose(SERVER, Kind::Data, &[1]).run();
    assert_eq!(bench.times(SERVER, Kind::Resent), [456]);
    bench.assert_complete(100, 1_000);
}

#[test]
fn timeouts_and_reports_and_new_data_together() {
    // SACK, then the timer, then new data while the old is repaired, then another loss.
    let config = Config { initial_window: 10, repair: Repair::Sack, limited_transmit: true, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 60_000).close(CLIENT);
    bench.lose(CLIENT, Kind::Data, &[1, 4, 6, 15, 16, 30, 31, 32]).lose(CLIENT, Kind::Resent, &[1, 4]).run();
    bench.assert_complete(60_000, 0);
    // Each loss costs one retransmission, lost ones another; nothing that was reported is sent again. What was in
    // flight when the timer expired may be.
    let resent = bench.packets(CLIENT, Kind::Resent).count();
    assert!((10..=16).contains(&resent), "{resent}");
}

#[test]
fn a_spurious_wake_up_is_harmless() {
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 10_000).close(CLIENT);
    bench.run_to(60);
    let mut sent = 0;
    let before = format!("{:?}", bench.ends);
    for end in [CLIENT, SERVER] {
        let config = bench.configs[end].clone();
        bench.ends[end].on_wake(&config, at_ms(60), &mut |_| sent += 1);
    }
    assert_eq!((sent, format!("{:?}", bench.ends)), (0, before));
}

#[test]
fn in_bsd_a_timeout_leaves_half_of_the_window_and_not_of_what_is_outstanding() {
    // Ten segments are the window; three are sent and lost. RFC 2581 halves what is outstanding, to no less than two;
    // FreeBSD 4 the window, in whole segments.
    for (threshold_of_window, initial_window, left) in [(false, 10, 2_000.0), (true, 10, 5_000.0), (true, 9, 4_000.0)] {
        let config = Config { threshold_of_window, initial_window, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 3_000).lose(CLIENT, Kind::Data, &[1, 2, 3]).run_to(1_050);
        assert_eq!(bench.ends[CLIENT].ssthresh(), left, "{threshold_of_window} {initial_window}");
    }
}
