//! Readers that stop: windows that close and open again, and senders that ask for them.

use crate::common::{Bench, CLIENT, Fate, Kind, SERVER, plain, stack};
use base::Span;
use std::cell::Cell;
use std::rc::Rc;
use tcp::Config;

/// A window of eight segments.
fn eight() -> Config {
    Config { window: 8_000, initial_window: 20, ..plain() }
}

/// The acknowledgements of the server: when, of how many segments, and the window.
fn told(bench: &Bench) -> Vec<(u64, u64, u32)> {
    let acks = bench.packets(SERVER, Kind::Ack);
    acks.map(|p| (p.at.ns() / 1_000_000, (p.segment.ack - 1) / 1_000, p.segment.window)).collect()
}

#[test]
fn what_is_not_read_takes_room() {
    let mut bench = Bench::new(&eight());
    bench.spacing = Span::from_ms(1);
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 20_000).run_to(100);
    // The right edge stays at 8000.
    let expected: Vec<(u64, u64, u32)> = (1..=8).map(|k| (49 + k, k, 8_000 - 1_000 * k as u32)).collect();
    assert_eq!(told(&bench), expected);
    assert_eq!((bench.ends[SERVER].received(), bench.ends[SERVER].unread()), (0, 8_000));
    assert_eq!(bench.packets(CLIENT, Kind::Data).count(), 8);
}

#[test]
fn a_closed_window_is_asked_for_with_patience() {
    // RFC 9293 §3.8.6.1: a retransmission timeout (a second here) after the last acknowledgement, which closed the
    // window at 100; then after twice that, and so on, up to a minute. Each is answered.
    let mut bench = Bench::new(&eight());
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 20_000).run_to(200_000);
    let asked: Vec<u64> = bench.times(CLIENT, Kind::Ack);
    assert_eq!(asked, [1_100, 3_100, 7_100, 15_100, 31_100, 63_100, 123_100, 183_100]);
    let answers: Vec<(u64, u64, u32)> = asked.iter().map(|at| (at + 50, 8, 0)).collect();
    assert_eq!(told(&bench)[8..], answers);
    // It stays open as long as it is answered.
    assert!(!bench.ends[CLIENT].is_aborted());
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
}

#[test]
fn nobody_answers_and_the_connection_is_given_up() {
    // Linux's tcp_retries2: fifteen probes. The first waits a second, and each twice as long as the one before up to a
    // minute: 1 + 2 + 4 + 8 + 16 + 32 and ten times 60 s, after 100 ms.
    let mut bench = Bench::new(&eight());
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 20_000);
    bench.script(|packet| if packet.from == SERVER && packet.number > 8 { Fate::Lose } else { Fate::Pass });
    bench.run();
    assert_eq!(bench.times(CLIENT, Kind::Ack).len(), 15);
    assert!(bench.ends[CLIENT].is_aborted());
    assert_eq!(bench.now.ns() / 1_000_000, 100 + 63_000 + 600_000);
}

#[test]
fn a_window_that_opens_is_told_at_once_and_used() {
    // By half of it or two segments, whichever is less (RFC 1122 §4.2.3.3, BSD's tcp_output).
    let mut bench = Bench::new(&eight());
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 20_000);
    bench.read_at(500, SERVER, 500).read_at(600, SERVER, 1_000).read_at(700, SERVER, 1_000).run_to(1_000);
    // 500 bytes and 1500 are no news; 2500 are.
    assert_eq!(told(&bench)[8..], [(700, 8, 2_500), (800, 9, 1_500), (800, 10, 500)]);
    assert_eq!(bench.flights(CLIENT).last(), Some(&(750, vec![9, 10])));
    bench.resume_at(1_200, SERVER).run();
    bench.ends[CLIENT].close();
    assert_eq!(bench.ends[SERVER].received(), 20_000);
}

#[test]
fn a_window_update_that_is_lost_is_asked_for() {
    let mut bench = Bench::new(&eight());
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 20_000).resume_at(500, SERVER).lose(SERVER, Kind::Ack, &[9]);
    bench.run_to(1_200);
    // The probe of 1100 is answered with it at 1150.
    assert_eq!(told(&bench)[8..10], [(500, 8, 8_000), (1_150, 8, 8_000)]);
    assert_eq!(bench.flights(CLIENT).last(), Some(&(1_200, (9..=16).collect())));
}

#[test]
fn no_silly_windows() {
    // RFC 9293 §3.8.6.2.2: 100 bytes read at a time, every 10 ms, from 200 on. The edge moves by a segment at least,
    // and the sender's segments are full.
    let mut bench = Bench::new(&eight());
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 20_000).close_at(1, CLIENT);
    (0..200).for_each(|k| {
        bench.read_at(200 + 10 * k, SERVER, 100);
    });
    bench.resume_at(3_000, SERVER).run();
    assert!(bench.packets(CLIENT, Kind::Data).all(|packet| packet.segment.payload == 1_000));
    bench.assert_complete(20_000, 0);
}

#[test]
fn a_remnant_of_a_window_is_used_by_the_timer() {
    // §3.8.6.2.1: half a segment of room, and nothing outstanding. The sender waits for its timer, and then sends that
    // much.
    let config = Config { window: 2_500, ..eight() };
    let mut bench = Bench::new(&config);
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 5_000).run_to(1_300);
    let sent: Vec<(u64, u16)> =
        bench.packets(CLIENT, Kind::Data).map(|p| (p.at.ns() / 1_000_000, p.segment.payload)).collect();
    assert_eq!(sent, [(0, 1_000), (0, 1_000), (1_100, 500)]);
    bench.resume_at(2_000, SERVER).close_at(2_001, CLIENT).run();
    bench.assert_complete(5_000, 0);
}

#[test]
fn a_fin_needs_no_room() {
    // Its sequence number does not count against the window here, and the reader sees it when all is read.
    let mut bench = Bench::new(&eight());
    bench.hold_at(0, SERVER).write_at(0, CLIENT, 8_000).close_at(0, CLIENT).run_to(1_000);
    assert!(!bench.ends[SERVER].peer_closed());
    bench.resume_at(2_000, SERVER).run();
    bench.assert_complete(8_000, 0);
}

#[test]
fn linux_closes_its_window_at_a_sixteenth() {
    // __tcp_select_window, with a buffer that does not grow as nothing is read: 64088 bytes are offered (131072 / 2,
    // less a segment), and less and less once the buffer has no more than that. The window closes; reading a sixteenth
    // and more tells of nothing until it can be offered twice what is (__tcp_cleanup_rbuf).
    let config = stack("linux");
    let mut bench = Bench::new(&config);
    bench.hold_at(0, SERVER).write_at(100, CLIENT, 200_000).run_to(3_000);
    let last = bench.packets(SERVER, Kind::Ack).last().expect("it acknowledged").segment;
    assert!(last.window < config.mss, "{}", last.window);
    // 81920 bytes of payload fit a buffer of 131072: what is unread and the remnant of a window.
    let unread = bench.ends[SERVER].unread();
    assert!((80_000..=81_920).contains(&(unread + u64::from(last.window))), "{unread} {}", last.window);
    bench.resume_at(4_000, SERVER).close_at(4_001, CLIENT).run();
    assert_eq!(bench.ends[SERVER].received(), 200_000);
    bench.assert_complete(200_000, 0);
}

#[test]
fn without_timestamps_a_round_trip_is_a_window_of_data() {
    // tcp_rcv_rtt_measure: without any round trip the buffer would stay at what it is at first, 81 920 bytes of window.
    let mut bench = Bench::new(&Config { timestamps: false, header: 40, ..stack("linux") });
    bench.write(CLIENT, 4_000_000).close(CLIENT).run();
    let widest = bench.packets(SERVER, Kind::Ack).map(|packet| packet.segment.window).max();
    assert!(widest.is_some_and(|window| window > 2 * 81_920), "{widest:?}");
    bench.assert_complete(4_000_000, 0);
}

#[test]
fn a_linux_offers_a_part_of_its_buffer() {
    // tcp_rcv_space_adjust bounds the buffer by tcp_rmem[2], 6 MB, and tcp_win_from_space leaves payload of it: of
    // 2304 bytes 1448, in whole 256ths 160. A link of 2.3 Gb/s would fill more than that over 100 ms.
    let mut bench = Bench::new(&stack("linux"));
    (bench.spacing, bench.writes_down) = (Span::from_us(5), false);
    let offered = Rc::new(Cell::new(0));
    let most = Rc::clone(&offered);
    bench.script(move |packet| {
        if packet.from == SERVER {
            most.set(most.get().max(packet.segment.window));
        }
        Fate::Pass
    });
    bench.write(CLIENT, 1 << 30).run_to(2_000);
    let part = 6 * 1_024 * 1_024 / 256 * (1_448 * 256 / 2_304);
    assert!((part - 1_448..=part).contains(&offered.get()), "{} of {part}", offered.get());
}
