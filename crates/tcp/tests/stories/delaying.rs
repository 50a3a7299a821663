//! Acknowledgements that follow the sender's habits (Linux): quick ones, the adaptive timer, interactive sessions.

use crate::common::{Bench, CLIENT, Kind, SERVER, plain};
use base::Span;
use tcp::{Config, DelayedAck};

/// Linux's delayed acknowledgements on the plain stack, without its quick ones at the start and without its window that
/// grows.
fn adapting(quick: u32) -> Config {
    let delayed_ack = DelayedAck {
        every: 2,
        timeout: Span::from_ms(40),
        quick,
        counts_small: false,
        adapts: true,
        ..plain().delayed_ack
    };
    Config { delayed_ack, ..plain() }
}

/// How long each acknowledgement of a segment that was written at one of these instants took beyond the round trip.
fn waits(config: &Config, writes: &[(u64, u64)]) -> Vec<u64> {
    let mut bench = Bench::new(config);
    for &(at, bytes) in writes {
        bench.write_at(at, CLIENT, bytes);
    }
    bench.run();
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
    let acks = bench.acks(SERVER);
    let mut received = 0;
    writes
        .iter()
        .map(|&(at, bytes)| {
            received += bytes;
            let acked = bench.packets(SERVER, Kind::Ack).find(|packet| packet.segment.ack > received);
            let acked = acked.unwrap_or_else(|| panic!("{at}: never acknowledged: {acks:?}"));
            acked.at.ns() / 1_000_000 - at - 50
        })
        .collect()
}

#[test]
fn the_end_of_what_was_written_is_acknowledged_when_it_is_read() {
    // __tcp_cleanup_rbuf: it was pushed, and the session is not interactive. Nine segments, the window of two opens
    // by one an acknowledgement: what is in the midst waits for the second or, as the last before the window is used
    // up, for the timer; the ninth does not.
    let config = Config { initial_window: 9, ..adapting(0) };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 9_000).run();
    assert_eq!(bench.acks(SERVER), [(51, 2), (53, 4), (55, 6), (57, 8), (58, 9)]);
    // Small ones too.
    assert_eq!(waits(&adapting(0), &[(0, 100), (5, 100), (300, 700)]), [0, 0, 0]);
}

/// `count` full segments, one at a time: the receiver's window has no room for more.
fn one_by_one(config: &Config, count: u64) -> Bench {
    let config = Config { window: 1_000, ..config.clone() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, count * 1_000);
    bench
}

#[test]
fn a_delay_in_vain_is_doubled() {
    // One segment fits the window, and each is alone. tcp_delack_timer_handler doubles the delay whenever it was in
    // vain: 40 ms (TCP_ATO_MIN), 80, 160, and no more than 200 (TCP_DELACK_MAX). The pauses, a round trip of 100 ms and
    // the delay before, are longer than the delay, so that nothing brings it down. The last segment is read.
    let mut bench = one_by_one(&adapting(0), 6);
    bench.run();
    let acks = bench.acks(SERVER);
    let waits: Vec<u64> = acks
        .iter()
        .zip([0].iter().chain(acks.iter().map(|ack| &ack.0)))
        .map(|(ack, before)| {
            let arrived = if *before == 0 { 50 } else { before + 100 };
            ack.0 - arrived
        })
        .collect();
    assert_eq!(waits, [40, 80, 160, 200, 200, 0]);
}

#[test]
fn a_session_is_interactive_once_an_answer_came_soon() {
    // tcp_event_data_sent, tcp_pingpong_thresh 1. The first request is acknowledged when it is read; the answer, 20 ms
    // later, is within 40 ms of it. From then on the acknowledgement waits for the answer, and goes with it.
    let config = adapting(0);
    let mut bench = Bench::new(&config);
    bench.write_at(0, CLIENT, 100).write_at(70, SERVER, 100);
    bench.write_at(500, CLIENT, 100).write_at(570, SERVER, 100);
    bench.run_to(600);
    assert_eq!(bench.times(SERVER, Kind::Ack), [50]);
    assert_eq!(bench.times(SERVER, Kind::Data), [70, 570]);
    // An answer that does not come in 40 ms ends that: the timer, and the next is acknowledged when it is read.
    bench.write_at(1_000, CLIENT, 100).write_at(2_000, CLIENT, 100).run_to(2_500);
    assert_eq!(bench.times(SERVER, Kind::Ack), [50, 1_090, 2_050]);
}

#[test]
fn small_segments_in_an_interactive_session_are_acknowledged_in_pairs() {
    // ICSK_ACK_PUSHED2: the second that is read and not acknowledged.
    let config = adapting(0);
    let mut bench = Bench::new(&config);
    bench.write_at(0, CLIENT, 100).write_at(60, SERVER, 100);
    bench.write_at(500, CLIENT, 100).write_at(510, CLIENT, 100).write_at(520, CLIENT, 100).run_to(650);
    // The pair at 560; the third waits for 20 ms and half of what the delay was, 20: 40 ms at least.
    assert_eq!(bench.times(SERVER, Kind::Ack), [50, 560, 610]);
}

#[test]
fn quick_acknowledgements_are_used_up_by_what_is_acknowledged() {
    // tcp_incr_quickack: four at the start; then every second. The fifth segment waits for the sixth.
    let config = Config { initial_window: 9, ..adapting(4) };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 20_000).run_to(58);
    assert_eq!(bench.acks(SERVER), [(50, 1), (51, 2), (52, 3), (53, 4), (55, 6), (57, 8)]);
}

#[test]
fn data_that_came_twice_makes_for_hurry() {
    // tcp_enter_quickack_mode in tcp_data_queue: the acknowledgement of the first is lost, and it comes again at 1050;
    // what follows is acknowledged one by one.
    let config = Config { initial_window: 1, ..adapting(4) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 4_000).lose(SERVER, Kind::Ack, &[1]).run();
    assert_eq!(bench.acks(SERVER), [(50, 1), (1_050, 1), (1_150, 2), (1_150, 3), (1_250, 4)]);
}

#[test]
fn a_fin_waits_for_the_other_ends() {
    // tcp_fin: the session is taken for interactive, the application's own FIN carries the acknowledgement; if it does
    // not close, the timer does. The end that has sent its FIN answers at once.
    let mut bench = Bench::new(&adapting(0));
    bench.closes_with_peer = [true, false];
    bench.write(CLIENT, 100).close_at(500, CLIENT).close_at(1_000, SERVER).run();
    assert_eq!(bench.times(SERVER, Kind::Ack), [50, 590]);
    assert_eq!(bench.times(CLIENT, Kind::Ack), [1_050]);
    bench.assert_complete(100, 0);
}

#[test]
fn a_window_that_grows_makes_for_hurry() {
    // tcp_grow_window. Half of the buffer of 128 kB less a segment is offered at first, 64536 bytes, and two segments
    // more with every one that comes, up to 160/256 of it less what that one takes, 81920 - 1440: eight steps. With
    // them nothing waits; the ninth segment does.
    let config = Config { initial_window: 40, window: 1 << 30, receive_buffer: 131_072, ..adapting(0) };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 40_000).run_to(70);
    let acks = bench.acks(SERVER);
    assert_eq!(acks[..8], [(50, 1), (51, 2), (52, 3), (53, 4), (54, 5), (55, 6), (56, 7), (57, 8)]);
    assert_eq!(acks[8..11], [(59, 10), (61, 12), (63, 14)]);
    let offered: Vec<u32> = bench.packets(SERVER, Kind::Ack).map(|packet| packet.segment.window).collect();
    assert_eq!(offered[..3], [66_536, 68_536, 70_536]);
    assert_eq!(offered[7..10], [80_480; 3]);
}

#[test]
fn a_full_segment_with_the_end_is_acknowledged_at_once() {
    // __tcp_ack_snd_check counts sequence numbers, and a FIN has one: with it a segment as large as any before is more
    // than one. The acknowledgement goes before this end's own FIN. A segment smaller than 536 bytes is no full one.
    for (bytes, acks) in [(700, 1), (500, 0)] {
        let mut bench = Bench::new(&adapting(0));
        bench.write(CLIENT, bytes).close(CLIENT).run();
        let sent = [Kind::Ack, Kind::Fin].map(|kind| bench.times(SERVER, kind));
        assert_eq!(sent, [vec![50; acks], vec![50]], "{bytes} bytes");
    }
}
