//! The receiver's side: delayed, immediate and selective acknowledgements, window updates.

use crate::common::{Bench, CLIENT, Kind, SERVER, delayed, plain, stack};
use base::Span;
use tcp::{Config, DelayedAck, Repair};

#[test]
fn one_segment_waits_for_the_timer_and_two_do_not() {
    // RFC 5681 §4.2 with 100 ms.
    let mut bench = Bench::new(&delayed());
    bench.write(CLIENT, 1_000).run();
    assert_eq!(bench.acks(SERVER), [(150, 1)]);
    let mut bench = Bench::new(&delayed());
    bench.write(CLIENT, 2_000).run();
    assert_eq!(bench.acks(SERVER), [(50, 2)]);
    let config = Config { initial_window: 3, ..delayed() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 3_000).run();
    assert_eq!(bench.acks(SERVER), [(50, 2), (150, 3)]);
}

#[test]
fn the_timer_runs_from_the_first_segment_it_covers() {
    let config = Config {
        delayed_ack: DelayedAck { every: 3, timeout: Span::from_ms(100), ..plain().delayed_ack },
        initial_window: 4,
        ..plain()
    };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 1_000).write_at(70, CLIENT, 1_000).run();
    assert_eq!(bench.acks(SERVER), [(150, 2)]);
}

#[test]
fn an_answer_carries_the_acknowledgement() {
    // The answer leaves at 50 with it, and the timer is off.
    let mut bench = Bench::new(&delayed());
    bench.write(CLIENT, 1_000).answer(SERVER, 1_000, 500, false).run_to(149);
    assert_eq!(bench.times(SERVER, Kind::Data), [50]);
    assert_eq!(bench.packets(SERVER, Kind::Data).next().map(|packet| packet.segment.ack), Some(1_001));
    bench.run();
    assert_eq!(bench.acks(SERVER), []);
    // The next segment has the whole delay again.
    bench.write_at(1_000, CLIENT, 1_000).run();
    assert_eq!(bench.acks(SERVER), [(1_150, 2)]);
}

#[test]
fn small_segments_count_as_the_stack_has_it() {
    // BSD counts segments.
    let mut bench = Bench::new(&delayed());
    bench.write_at(0, CLIENT, 100).write_at(1, CLIENT, 100).run();
    assert_eq!(bench.times(SERVER, Kind::Ack), [51]);
    // RFC 5681 §4.2 asks for one acknowledgement for two full segments' worth of data.
    let config = Config { delayed_ack: DelayedAck { counts_small: false, ..delayed().delayed_ack }, ..delayed() };
    let mut bench = Bench::new(&config);
    bench.write_at(0, CLIENT, 100).write_at(1, CLIENT, 100).run();
    assert_eq!(bench.times(SERVER, Kind::Ack), [150]);
    // More than one full segment is unacknowledged: Linux, __tcp_ack_snd_check.
    let mut bench = Bench::new(&config);
    bench.write_at(0, CLIENT, 1_000).write_at(1, CLIENT, 100).run();
    assert_eq!(bench.times(SERVER, Kind::Ack), [51]);
    // Three of 400 bytes are.
    let mut bench = Bench::new(&config);
    (0..3).for_each(|k| {
        bench.write_at(k, CLIENT, 400);
    });
    bench.run();
    assert_eq!(bench.times(SERVER, Kind::Ack), [52]);
}

#[test]
fn a_gap_is_reported_at_once_and_so_is_its_end() {
    // RFC 5681 §4.2. Segments arrive from 50 on, one a millisecond; 3 is lost and comes again.
    for repair in [Repair::NewReno, Repair::Sack] {
        let config = Config { initial_window: 8, repair, ..delayed() };
        let mut bench = Bench::new(&config);
        bench.spacing = Span::from_ms(1);
        bench.write(CLIENT, 8_000).lose(CLIENT, Kind::Data, &[3]).run();
        // 1 and 2 together; 4, 5, 6 (three duplicates: retransmission at 105), 7, 8; the hole filled at 155.
        // With nothing else to send SACK sends 8 again at 106 (RFC 6675 §4, NextSeg rule 4).
        let mut expected = vec![(51, 2), (53, 2), (54, 2), (55, 2), (56, 2), (57, 2), (155, 8)];
        expected.extend((repair == Repair::Sack).then_some((156, 8)));
        assert_eq!(bench.acks(SERVER), expected);
        let reports: Vec<Vec<(u64, u64)>> =
            bench.packets(SERVER, Kind::Ack).map(|p| p.segment.sacks.above(p.segment.ack).collect()).collect();
        if repair == Repair::Sack {
            assert_eq!(reports[1..6], [4, 5, 6, 7, 8].map(|last| vec![(3_001, last * 1_000 + 1)]));
        } else {
            assert!(reports.iter().all(Vec::is_empty));
        }
    }
}

#[test]
fn the_newest_block_is_reported_first() {
    // RFC 2018 §4: 2, 4, 6 and 8 of eight are lost; three blocks fit.
    let config = Config { initial_window: 9, repair: Repair::Sack, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 9_000).lose(CLIENT, Kind::Data, &[2, 4, 6, 8]).run_to(50);
    let last = bench.packets(SERVER, Kind::Ack).last().expect("it acknowledged").segment;
    let blocks: Vec<_> = last.sacks.above(last.ack).collect();
    assert_eq!(blocks, [(8_001, 9_001), (6_001, 7_001), (4_001, 5_001)]);
    // Kind and length, three times eight, and two bytes of padding.
    assert_eq!(last.size, 40 + 28);
}

#[test]
fn old_data_is_acknowledged_at_once() {
    // RFC 9293 §3.10.7.4: a segment that is not acceptable is answered. The acknowledgement is lost, the timer
    // sends the segment again.
    let mut bench = Bench::new(&delayed());
    bench.write(CLIENT, 1_000).lose(SERVER, Kind::Ack, &[1]).run();
    assert_eq!(bench.acks(SERVER), [(150, 1), (1_050, 1)]);
}

#[test]
fn bsd_tells_the_window_that_was_read() {
    let config = stack("freebsd4");
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 6 * 1_460).run();
    let told: Vec<(u64, u64, u32)> = bench
        .packets(SERVER, Kind::Ack)
        .map(|p| (p.at.ns() / 1_000_000, (p.segment.ack - 1) / 1_460, p.segment.window))
        .collect();
    // The window before the application reads two segments, and after. The third segment of the second flight waits
    // for the fourth.
    let (before, after) = (16_384 - 2 * 1_460, 16_384);
    assert_eq!(
        told,
        [(150, 2, before), (150, 2, after), (250, 4, before), (250, 4, after), (350, 6, before), (350, 6, after)]
    );
}

#[test]
fn window_updates_are_no_duplicate_acknowledgements() {
    // RFC 5681 §2 (e): the window is the same. With eleven segments in flight every pair of them brings an update,
    // and a retransmission would be seen.
    let mut bench = Bench::new(&stack("freebsd4"));
    bench.write(CLIENT, 400_000).close(CLIENT).run();
    let updates = bench.packets(SERVER, Kind::Ack).filter(|p| p.segment.window == 16_384).count();
    assert!(updates > 100, "{updates}");
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 0);
    bench.assert_complete(400_000, 0);
}

#[test]
fn an_old_acknowledgement_does_not_bring_back_an_old_window() {
    // RFC 9293 §3.10.7.4: SND.WND follows the newest acknowledgement only. The eleventh, with the smaller window, is
    // overtaken by all that follow it; what is written then goes out in a full window of eleven.
    let config = Config { idle_restart: false, ..stack("freebsd4") };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40 * 1_460).delay(SERVER, Kind::Ack, &[11], Span::from_secs(2));
    bench.write_at(5_000, CLIENT, 40 * 1_460).run_to(5_000);
    let late = bench.packets(SERVER, Kind::Ack).nth(10).expect("so many were sent").segment;
    assert_eq!(late.window, 16_384 - 2 * 1_460, "it is one with the smaller window");
    assert_eq!(bench.flights(CLIENT).last(), Some(&(5_000, (41..=51).collect())));
}

#[test]
fn reports_beyond_the_third_wait_for_each_other() {
    // Segments 0.1 ms apart behind a hole, to a receiver that is in no hurry and has measured no round trip of data:
    // it reports three at once, and then waits for the 0.1 ms of the timer's slack, in which one more comes.
    let linux = stack("linux");
    let config = Config {
        receive_buffer: 0,
        initial_window: 20,
        delayed_ack: DelayedAck { quick: 0, ..linux.delayed_ack },
        ..linux
    };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_us(100);
    bench.write(CLIENT, 20 * u64::from(config.mss)).lose(CLIENT, Kind::Data, &[3]).run_to(153);
    let at: Vec<u64> = bench.packets(SERVER, Kind::Ack).map(|packet| packet.at.ns() / 1_000).collect();
    assert_eq!(at[0], 150_100);
    assert_eq!(at[1..4], [150_300, 150_400, 150_500]);
    assert_eq!(at[4..], [150_700, 150_900, 151_100, 151_300, 151_500, 151_700, 151_900]);
}
