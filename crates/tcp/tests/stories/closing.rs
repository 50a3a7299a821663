//! Closing: who closes first, FINs that are lost, and half-closed connections.

use crate::common::{Bench, CLIENT, Kind, SERVER, at_ms, delayed, plain, stack};
use tcp::{Config, Flags, Segment};

fn fins(bench: &Bench, from: usize) -> Vec<u64> {
    bench
        .story
        .iter()
        .filter(|packet| packet.from == from && packet.segment.flags.has(Flags::FIN))
        .map(|packet| packet.at.ns() / 1_000_000)
        .collect()
}

#[test]
fn the_fin_rides_on_the_last_segment() {
    let mut bench = Bench::new(&delayed());
    bench.write(CLIENT, 2_500).close(CLIENT).run();
    // Two segments fit the window; their acknowledgement lets out the short one with the FIN. It is acknowledged at
    // once, and the server's own FIN with it.
    assert_eq!(fins(&bench, CLIENT), [100]);
    assert_eq!(fins(&bench, SERVER), [150]);
    assert_eq!(bench.acks(CLIENT), [(200, 0)]);
    assert_eq!(bench.now, at_ms(250));
    bench.assert_complete(2_500, 0);
}

#[test]
fn either_end_may_close_first() {
    for first in [CLIENT, SERVER] {
        for config in [plain(), delayed(), stack("freebsd4"), stack("linux")] {
            let mut bench = Bench::new(&config);
            bench.write(CLIENT, 400).answer(SERVER, 400, 5_000, false).close_at(1_000, first).run();
            // FIN, its acknowledgement with or before the other's FIN, and the last acknowledgement.
            assert_eq!(fins(&bench, first), [1_000]);
            assert_eq!(fins(&bench, 1 - first), [1_050]);
            assert_eq!(bench.times(first, Kind::Ack).last(), Some(&1_100));
            bench.assert_complete(400, 5_000);
        }
    }
}

#[test]
fn both_may_close_at_once() {
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 400).write(SERVER, 700).close_at(1_000, CLIENT).close_at(1_000, SERVER).run();
    assert_eq!([fins(&bench, CLIENT), fins(&bench, SERVER)], [[1_000], [1_000]]);
    bench.assert_complete(400, 700);
}

#[test]
fn a_lost_fin_is_sent_again() {
    for first in [CLIENT, SERVER] {
        // The FIN alone: one second after it was sent.
        let mut bench = Bench::new(&plain());
        bench.write(CLIENT, 400).close_at(1_000, first).lose(first, Kind::Fin, &[1]).run();
        assert_eq!(fins(&bench, first), [1_000, 2_000]);
        bench.assert_complete(400, 0);
        // The FIN of the other.
        let mut bench = Bench::new(&plain());
        bench.write(CLIENT, 400).close_at(1_000, first).lose(1 - first, Kind::Fin, &[1]).run();
        assert_eq!(fins(&bench, 1 - first), [1_050, 2_050]);
        bench.assert_complete(400, 0);
        // The last acknowledgement: the FIN comes again and is answered by an end that was through.
        let mut bench = Bench::new(&plain());
        bench.write(CLIENT, 400).close_at(1_000, first);
        let before = usize::from(first == SERVER);
        bench.lose(first, Kind::Ack, &[before + 1]).run();
        assert_eq!(fins(&bench, 1 - first), [1_050, 2_050]);
        bench.assert_complete(400, 0);
    }
}

#[test]
fn a_last_segment_with_its_fin_is_sent_again_whole() {
    let config = Config { initial_window: 4, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 4_000).close(CLIENT).lose(CLIENT, Kind::Data, &[4]).run();
    let resent: Vec<_> = bench.packets(CLIENT, Kind::Resent).map(|packet| packet.segment).collect();
    assert_eq!(resent.len(), 1);
    assert!(resent[0].payload == 1_000 && resent[0].flags.has(Flags::FIN));
    assert_eq!(fins(&bench, CLIENT), [0, 1_100]);
    bench.assert_complete(4_000, 0);
}

#[test]
fn a_fin_that_overtakes_its_data_waits() {
    let config = Config { initial_window: 4, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 4_000).close(CLIENT).lose(CLIENT, Kind::Data, &[2]);
    bench.run_to(60);
    assert!(!bench.ends[SERVER].peer_closed() && bench.ends[SERVER].received() == 1_000);
    bench.run();
    bench.assert_complete(4_000, 0);
}

#[test]
fn a_half_closed_connection_still_carries_data_the_other_way() {
    for name in ["freebsd4", "linux"] {
        let mut bench = Bench::new(&stack(name));
        bench.closes_with_peer[SERVER] = false;
        bench.write(CLIENT, 400).close(CLIENT).write_at(2_000, SERVER, 30_000).close_at(2_000, SERVER);
        bench.run_to(1_999);
        assert!(bench.ends[SERVER].peer_closed() && !bench.ends[SERVER].is_done() && !bench.ends[CLIENT].is_done());
        bench.run();
        bench.assert_complete(400, 30_000);
    }
}

#[test]
fn closing_waits_for_what_is_unsent() {
    let mut bench = Bench::new(&plain());
    bench.write(CLIENT, 50_000).close(CLIENT).lose(CLIENT, Kind::Data, &[3, 20, 50]).run();
    assert!(fins(&bench, CLIENT)[0] >= 500, "the FIN goes with segment 50");
    bench.assert_complete(50_000, 0);
}

#[test]
fn a_fin_waits_for_room_where_it_takes_some() {
    // Ten segments fill Linux's first window; the FIN is an eleventh packet there (tcp_cwnd_test), and goes with the
    // first acknowledgement, 100 ms later. BSD's goes at once.
    for (fin_takes_room, at) in [(true, 300), (false, 200)] {
        let config = Config { fin_takes_room, ..stack("linux") };
        let mut bench = Bench::new(&config);
        bench.write_at(200, CLIENT, 10 * u64::from(config.mss)).close_at(200, CLIENT).run_to(310);
        assert_eq!(fins(&bench, CLIENT), [at], "{fin_takes_room}");
    }
}

#[test]
fn a_fin_goes_alone_where_everything_was_sent_before_the_application_closed() {
    // What is written is sent before the socket closes, but for a short last segment (MSG_MORE). Packets with data, and
    // where the FIN is, counted from the first that carries data.
    let linux = stack("linux");
    let mss = u64::from(linux.mss);
    for (bytes, packets, fin) in [(500, 1, 1), (mss, 1, 2), (3 * mss, 3, 4), (3 * mss + 500, 4, 4), (12 * mss, 12, 12)]
    {
        let mut bench = Bench::new(&linux);
        bench.finish_at(200, CLIENT, bytes).run();
        let has_fin = |segment: &Segment| segment.flags.has(Flags::FIN);
        let of_client = bench.story.iter().filter(|packet| packet.from == CLIENT).map(|packet| packet.segment);
        let sent: Vec<Segment> = of_client.filter(|segment| segment.payload > 0 || has_fin(segment)).collect();
        let place = sent.iter().position(has_fin).map(|place| place + 1);
        let with_data = sent.iter().filter(|segment| segment.payload > 0).count();
        assert_eq!((with_data, place), (packets, Some(fin)), "{bytes} bytes");
        bench.assert_complete(bytes, 0);
    }
}

#[test]
fn closing_without_a_word() {
    for name in ["freebsd4", "linux"] {
        let mut bench = Bench::new(&stack(name));
        bench.close(CLIENT).run();
        assert_eq!(fins(&bench, CLIENT), [100]);
        assert_eq!(fins(&bench, SERVER), [150]);
        bench.assert_complete(0, 0);
    }
}

#[test]
fn an_end_that_is_not_answered_gives_up() {
    let mut bench = Bench::new(&stack("freebsd4"));
    bench.write(CLIENT, 400).answer(SERVER, 400, 5_000, true);
    bench.script(|packet| {
        if packet.from == SERVER && packet.at > at_ms(140) {
            crate::common::Fate::Lose
        } else {
            crate::common::Fate::Pass
        }
    });
    bench.run();
    assert!(bench.ends.iter().all(tcp::Endpoint::is_aborted));
    // Twelve retries and the expiry that gives up.
    bench.ends.iter().for_each(|end| assert_eq!(end.stats().timeouts, 13));
}

#[test]
#[should_panic(expected = "nothing is written after closing")]
fn writing_after_closing_is_caught() {
    Bench::new(&delayed()).write(CLIENT, 2_500).close(CLIENT).write(CLIENT, 1).run();
}
