//! What the window lets out: slow start, congestion avoidance, the receive window, idle periods.

use crate::common::{Bench, CLIENT, Kind, SERVER, delayed, plain, stack};
use tcp::{Config, Control, Reduction, Repair};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

#[test]
fn slow_start_doubles_each_round_trip() {
    // RFC 5681 §3.1: a segment for each acknowledgement.
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 30_000).close(CLIENT).run();
    let expected = [(0, numbers(1, 2)), (100, numbers(3, 6)), (200, numbers(7, 14)), (300, numbers(15, 30))];
    assert_eq!(bench.flights(CLIENT), expected);
    bench.assert_complete(30_000, 0);
}

#[test]
fn slow_start_with_delayed_acks_grows_by_half() {
    // Every second segment is acknowledged, the odd one by the timer of 100 ms: at 150 the receiver holds 4 (one
    // acknowledgement) and the lone 5, which 6 joins at 250 just as its timer is due.
    let mut bench = Bench::new(&delayed());
    bench.write(CLIENT, 12_000).close(CLIENT).run();
    let expected = [
        (0, numbers(1, 2)),
        // One acknowledgement for two: 2 + 1.
        (100, numbers(3, 5)),
        // One for 3 and 4: 3 + 1 in all, of which 5 is on its way.
        (200, numbers(6, 8)),
        // One for 5 and 6, one for 7 and 8.
        (300, numbers(9, 12)),
    ];
    assert_eq!(bench.flights(CLIENT), expected);
    bench.assert_complete(12_000, 0);
}

#[test]
fn whole_segments_count_whatever_they_hold() {
    // Linux counts packets (tcp_slow_start): four segments, one of them half full, open a window of four by four.
    let config = Config {
        initial_window: 4,
        repair: Repair::Sack,
        reduction: Reduction::Proportional,
        whole_segments: true,
        byte_counting: true,
        cwnd_validation: true,
        ..plain()
    };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 3_500).run();
    assert_eq!(bench.ends[CLIENT].cwnd(), 8_000.0);
}

#[test]
fn counting_bytes_slow_start_doubles_in_spite_of_delayed_acks() {
    // RFC 3465 §2.2, L as large as an acknowledgement of two segments asks for.
    let config = Config { byte_counting: true, ..delayed() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 14_000).close(CLIENT).run();
    assert_eq!(bench.flights(CLIENT), [(0, numbers(1, 2)), (100, numbers(3, 6)), (200, numbers(7, 14))]);
}

/// In congestion avoidance from 10 segments on: 20 were in flight when one was lost.
fn avoiding(config: &Config) -> Bench {
    let config = Config { initial_window: 20, repair: Repair::Sack, ..config.clone() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 4_000_000).lose(CLIENT, Kind::Data, &[1]);
    // The retransmission arrives at 150 and ends the recovery at 200.
    bench.run_to(200);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 10_000.0);
    bench
}

#[test]
fn congestion_avoidance_adds_a_segment_a_round_trip() {
    // RFC 5681 (3): each of W acknowledgements adds 1/W, a little less as W grows within the round; over n rounds
    // W grows by n less at most the sum of 1/W, which is 0.1 a round here. With delayed acknowledgements half of it.
    for (config, rounds_a_segment) in [(plain(), 1.0), (delayed(), 2.0)] {
        let mut bench = avoiding(&config);
        let before = bench.ends[CLIENT].cwnd();
        bench.run_to(200 + 20 * 100);
        let grown = (bench.ends[CLIENT].cwnd() - before) / 1000.0 * rounds_a_segment;
        assert!((18.0..=20.5).contains(&grown), "{grown} in 20 rounds at {rounds_a_segment} a segment");
    }
}

#[test]
fn a_validated_window_grows_below_a_hundred_segments_too() {
    // RFC 7661: the window grows while it is what limits the sender. A sender with data to spare fills it to within
    // a segment, never to the byte.
    for counted in [false, true] {
        let config = Config { cwnd_validation: true, byte_counting: counted, ..plain() };
        let mut bench = avoiding(&config);
        let before = bench.ends[CLIENT].cwnd();
        bench.run_to(200 + 20 * 100);
        let grown = (bench.ends[CLIENT].cwnd() - before) / 1000.0;
        assert!((18.0..=20.5).contains(&grown), "{grown} segments in 20 rounds");
    }
}

#[test]
fn a_validated_window_does_not_grow_unused() {
    let config = Config { cwnd_validation: true, initial_window: 10, ..plain() };
    let mut bench = Bench::new(&config);
    // One segment every 200 ms: below the RTO of a second, so that no idle period intervenes.
    (0..50).for_each(|k| {
        bench.write_at(k * 200, CLIENT, 1_000);
    });
    bench.run();
    assert_eq!(bench.ends[CLIENT].cwnd(), 10_000.0);
}

#[test]
fn cubic_recovers_its_window_in_the_time_k() {
    // RFC 9438 §4.2: K = cbrt(W_max (1 - beta) / C) = cbrt(100 x 0.3 / 0.4) = 4.217 s after the reduction at 100
    // segments. The window is then W_max again, to within the round trip by which the sender looks ahead and the one
    // by which it follows: near K the curve is flat, C x 0.2^3 = 0.003 segments, and Reno's estimate is below it
    // (70 + 0.53 x 42 = 92). Steps of one acknowledgement lag by (target - cwnd) / cwnd a segment, below 1 %.
    let config =
        Config { control: Control::Cubic, byte_counting: true, repair: Repair::Sack, initial_window: 100, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000_000).lose(CLIENT, Kind::Data, &[1]);
    bench.run_to(200);
    assert!((bench.ends[CLIENT].ssthresh() - 70_000.0).abs() < 1e-6);
    bench.run_to(200 + 4_217);
    let window = bench.ends[CLIENT].cwnd() / 1000.0;
    assert!((99.0..=100.5).contains(&window), "{window}");
}

#[test]
fn cubic_starts_from_a_plateau_after_a_timeout() {
    // RFC 9438 §4.8: K = 0 and W_max the window when congestion avoidance begins, here 70 after seven round trips of
    // slow start. For two seconds Reno's estimate is ahead: 0.53 segments a round trip, 10.6 in all, where the curve
    // has 0.4 x 2^3 = 3.2. Towards the old peak of 100 it would be at 95.
    let config = Config { control: Control::Cubic, byte_counting: true, initial_window: 100, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000_000).lose(CLIENT, Kind::Data, &(1..=100).collect::<Vec<_>>());
    bench.run_to(1_700);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 70_000.0);
    assert!((70_000.0..72_000.0).contains(&bench.ends[CLIENT].cwnd()), "{}", bench.ends[CLIENT].cwnd());
    bench.run_to(3_700);
    let window = bench.ends[CLIENT].cwnd() / 1000.0;
    assert!((79.0..82.0).contains(&window), "{window}");
}

#[test]
fn sixteen_kilobytes_are_eleven_segments() {
    // 16384 / 1460 = 11.2, and no part of a segment is sent while more is to come.
    let config = stack("freebsd4");
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 300_000).close(CLIENT).run();
    let mut most = 0;
    let (mut sent, mut acked) = (0, 0);
    for packet in &bench.story {
        match packet.kind {
            Kind::Data if packet.from == CLIENT => sent = packet.segment.end(),
            // On its arrival; the story has it when it was sent.
            Kind::Ack if packet.from == SERVER => acked = packet.segment.ack,
            _ => {}
        }
        if packet.from == CLIENT && acked > 0 {
            most = most.max(sent - acked);
        }
    }
    // What the client sends at an instant answers acknowledgements sent 50 ms before, so at its sending it is all
    // beyond them.
    assert_eq!(most, 11 * 1460);
    bench.assert_complete(300_000, 0);
}

#[test]
fn an_idle_period_brings_back_the_initial_window() {
    // RFC 5681 §4.1: nothing sent for longer than the RTO, here one second.
    for (pause, first_flight) in [(900, 6), (1_100, 2)] {
        let mut bench = Bench::new(&plain());
        // Two, then four: the window ends at eight, or at two after the pause.
        bench.write(CLIENT, 6_000).write_at(100 + pause, CLIENT, 6_000).run();
        assert_eq!(bench.flights(CLIENT)[2], (100 + pause, numbers(7, 6 + first_flight)), "after {pause} ms");
    }
}

#[test]
fn a_pause_leaves_three_quarters_in_whole_segments() {
    // tcp_cwnd_restart: the threshold is a half and a quarter, each in whole segments: of 11 these are 5 and 2. A loss
    // has brought it below that before.
    for whole_segments in [true, false] {
        let config = Config {
            idle_halves: true,
            initial_window: 10,
            reduction: Reduction::Proportional,
            repair: Repair::Rack,
            whole_segments,
            ..plain()
        };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 10_000).lose(CLIENT, Kind::Data, &[1]).run();
        assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0);
        // Congestion avoidance brings it to eleven.
        bench.write_at(1_000, CLIENT, 50_000).run_to(3_000);
        let before = bench.ends[CLIENT].cwnd();
        assert!((11_000.0..11_999.0).contains(&before), "{before}");
        bench.write_at(9_000, CLIENT, 1_000).run_to(9_500);
        let expected = if whole_segments { 7_000.0 } else { 0.75 * before };
        assert_eq!(bench.ends[CLIENT].ssthresh(), expected);
    }
}

#[test]
fn a_persistent_connection_carries_several_exchanges() {
    for name in ["freebsd4", "linux"] {
        let mut bench = Bench::new(&stack(name));
        bench.write(CLIENT, 300);
        for k in 0..4 {
            bench.answer(SERVER, 300 * (k + 1), 20_000, k == 3);
            if k < 3 {
                bench.answer(CLIENT, 20_000 * (k + 1), 300, false);
            }
        }
        bench.run();
        bench.assert_complete(1_200, 80_000);
        assert_eq!(bench.times(CLIENT, Kind::Syn), [0]);
        assert_eq!(bench.packets(SERVER, Kind::Resent).count(), 0);
    }
}
