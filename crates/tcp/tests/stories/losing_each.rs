//! Each packet of a short exchange is lost in turn, and each number of segments of a window.

use crate::common::{Bench, CLIENT, Kind, SERVER, plain};
use crate::told::assert_told;
use base::Span;
use tcp::{Config, Reduction, Repair};

/// A request of 100 bytes, answered by four segments, the last of which closes; timers as in RFC 6298.
fn exchange() -> Bench {
    let config = Config { handshake: true, initial_window: 4, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 100).answer(SERVER, 100, 4_000, true);
    bench
}

#[test]
fn nothing_is_lost() {
    assert_told(
        "nothing is lost",
        &mut exchange(),
        "  0 client SYN
          50 server SYN/ACK
         100 client ack 0 data 1
         150 server ack 100b data 1..3 4+fin   -- an initial window of four
         200 client ack 1..3 4+fin FIN
         250 server ack 100b+fin",
    );
}

/// A row: what is lost, what is sent again because of it, when the client has the whole answer and when both ends are
/// through, and why.
type Row = ((usize, Kind, usize), &'static [(u64, usize, Kind)], u64, u64, &'static str);

#[test]
fn each_packet_of_an_exchange_is_lost_in_turn() {
    use Kind::{Ack, Data, Fin, Resent, Syn, SynAck};
    let table: [Row; 14] = [
        (
            (CLIENT, Syn, 1),
            &[(1_000, CLIENT, Syn)],
            1_200,
            1_300,
            "RFC 6298 §2 (2.1): one second. The request fits the initial window of one (RFC 5681 §3.1), and the server \
             sent its SYN/ACK once",
        ),
        (
            (SERVER, SynAck, 1),
            &[(1_000, CLIENT, Syn), (1_050, SERVER, SynAck)],
            1_400,
            1_500,
            "the client's timer is first; the server's initial window is one: 1, then 2 and 3, then 4",
        ),
        ((CLIENT, Ack, 1), &[], 200, 300, "the request behind it says the same"),
        (
            (CLIENT, Data, 1),
            &[(1_100, CLIENT, Resent)],
            1_200,
            1_300,
            "RFC 6298 §2.4: one second at least after a round trip of 100 ms",
        ),
        ((SERVER, Ack, 1), &[], 200, 300, "the answer acknowledges the request"),
        (
            (SERVER, Data, 1),
            &[(250, SERVER, Resent)],
            300,
            400,
            "RFC 5681 §3.2: the acknowledgements of 2, 3 and 4 are three duplicates",
        ),
        ((SERVER, Data, 2), &[(1_250, SERVER, Resent)], 1_300, 1_400, "two duplicates; the timer since 250"),
        ((SERVER, Data, 3), &[(1_250, SERVER, Resent)], 1_300, 1_400, "one duplicate"),
        ((SERVER, Data, 4), &[(1_250, SERVER, Resent)], 1_300, 1_400, "a lost tail"),
        ((CLIENT, Ack, 2), &[], 200, 300, "the acknowledgement of 2 covers 1"),
        ((CLIENT, Ack, 4), &[], 200, 300, "the acknowledgement of 4 covers 3"),
        ((CLIENT, Ack, 5), &[], 200, 300, "the FIN behind it says the same"),
        (
            (CLIENT, Fin, 1),
            &[(1_200, CLIENT, Resent)],
            200,
            1_300,
            "a FIN is repeated like data: a second after it was sent",
        ),
        (
            (SERVER, Ack, 2),
            &[(1_200, CLIENT, Resent)],
            200,
            1_300,
            "the client cannot tell it from a lost FIN, and is answered once more",
        ),
    ];
    for ((from, kind, number), again, answered, through, reason) in table {
        let mut bench = exchange();
        bench.lose(from, kind, &[number]);
        while bench.ends[CLIENT].received() < 4_000 {
            assert!(bench.step(base::Time::NEVER), "{kind:?} {number} is lost: the answer never comes");
        }
        let got = bench.now;
        bench.run();
        let repeated: Vec<(u64, usize, Kind)> = bench
            .story
            .iter()
            .filter(|p| p.kind == Resent || matches!(p.kind, Syn | SynAck) && p.number > 1)
            .map(|p| (p.at.ns() / 1_000_000, p.from, p.kind))
            .collect();
        let seen = (got.ns() / 1_000_000, bench.now.ns() / 1_000_000, repeated);
        assert_eq!(seen, (answered, through, again.to_vec()), "{kind:?} {number} of {from} is lost: {reason}");
        bench.assert_complete(100, 4_000);
    }
}

/// Twenty segments, ten in the first window, of which the first `lost` are lost.
fn window(repair: Repair, lost: usize) -> Bench {
    let config = Config { initial_window: 10, repair, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000).lose(CLIENT, Kind::Data, &(1..=lost).collect::<Vec<_>>());
    bench
}

/// The first ten segments when they were sent again.
fn repairs(bench: &Bench) -> Vec<(u64, Vec<u64>)> {
    let mut repairs: Vec<(u64, Vec<u64>)> = vec![];
    for packet in bench.packets(CLIENT, Kind::Resent) {
        let (at, segment) = (packet.at.ns() / 1_000_000, (packet.segment.seq - 1) / 1_000 + 1);
        match repairs.last_mut() {
            Some(last) if last.0 == at => last.1.push(segment),
            _ => repairs.push((at, vec![segment])),
        }
    }
    repairs
}

#[test]
fn any_number_of_a_window_is_lost() {
    for lost in 1..=10_u64 {
        // RFC 6582 §3.2: the third duplicate repairs the first, each partial acknowledgement the next, a round trip
        // later. With eight lost there are two duplicates; RFC 6298 §5: a second, and slow start over everything.
        let newreno = match lost {
            1..=7 => (1..=lost).map(|k| (100 * k, vec![k])).collect(),
            _ => vec![(1_000, vec![1]), (1_100, vec![2, 3]), (1_200, vec![4, 5, 6, 7]), (1_300, vec![8, 9, 10])],
        };
        // RFC 6675 §5: cwnd is five. The third duplicate proves all of them lost and leaves 10 - 3 - lost under way;
        // each further one takes one more away. So five go out at 100, lost ones first, and the others as these are
        // acknowledged. After the timer what was reported is not sent again.
        let sack = match lost {
            1..=5 => vec![(100, (1..=lost).collect())],
            6 | 7 => vec![(100, vec![1, 2, 3, 4, 5]), (200, (6..=lost).collect())],
            _ => {
                vec![(1_000, vec![1]), (1_100, vec![2, 3]), (1_200, vec![4, 5, 6, 7]), (1_300, (8..=lost).collect())]
            }
        };
        for (repair, expected) in [(Repair::NewReno, newreno), (Repair::Sack, sack)] {
            let mut bench = window(repair, lost as usize);
            bench.run();
            assert_eq!(repairs(&bench), expected, "{repair:?}, the first {lost} of ten are lost");
            let stats = bench.ends[CLIENT].stats();
            let by_timer = u64::from(lost > 7);
            assert_eq!((u64::from(stats.timeouts), u64::from(stats.recoveries)), (by_timer, 1 - by_timer));
            assert_eq!(bench.ends[SERVER].received(), 20_000);
        }
    }
}

#[test]
fn newreno_repairs_many_losses_one_a_round_trip() {
    // RFC 6582 §4, "Slow-but-Steady": every partial acknowledgement restarts the timer, as in BSD
    // (tcp_newreno_partial_ack) and Linux (tcp_rearm_rto). What §3.2 step 3 recommends restarts it with the first
    // alone, at 200, and would go on from one segment at 1200.
    let config = Config { initial_window: 18, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 18_000).lose(CLIENT, Kind::Data, &(1..=14).collect::<Vec<_>>()).run();
    let expected: Vec<(u64, Vec<u64>)> = (1..=14).map(|k| (100 * k, vec![k])).collect();
    assert_eq!(repairs(&bench), expected);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
    assert_eq!(bench.ends[SERVER].received(), 18_000);
}

#[test]
fn one_report_of_three_segments_is_enough() {
    // RFC 6675 §5 (2): segments leave one a millisecond, 1 is lost, and so are the reports of 2 to 4. That of 5, at 54,
    // is the first duplicate and has more than two segments above the hole. Without reports it takes three.
    for (repair, at) in [(Repair::Sack, 104), (Repair::NewReno, 106)] {
        let config = Config { initial_window: 10, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.spacing = Span::from_ms(1);
        bench.write(CLIENT, 20_000).lose(CLIENT, Kind::Data, &[1]).lose(SERVER, Kind::Ack, &[1, 2, 3]).run();
        assert_eq!(bench.times(CLIENT, Kind::Resent), [at], "{repair:?}");
    }
}

#[test]
fn reordering_by_three_costs_a_repair() {
    // RFC 5681 §3.2 cannot tell it from a loss. Segment 3 comes 3.5 ms late, behind 4, 5 and 6. To NewReno its own
    // acknowledgement at 105.5 and the next are partial ones (RFC 6582 §3.2 step 3), to SACK they are not: 9 and 10
    // are sent with room to spare, and nothing is lost.
    let late = |repair, segments: u64| {
        let config = Config { initial_window: 8, repair, ..plain() };
        let mut bench = Bench::new(&config);
        bench.spacing = Span::from_ms(1);
        bench.write(CLIENT, segments).delay(CLIENT, Kind::Data, &[3], Span::from_us(3_500)).run();
        let again = bench.packets(CLIENT, Kind::Resent).map(|p| (p.at.ns() / 100_000, (p.segment.seq - 1) / 1_000 + 1));
        again.collect::<Vec<_>>()
    };
    assert_eq!(late(Repair::NewReno, 8_000), [(1_050, 3), (1_055, 7), (1_060, 8)]);
    assert_eq!(late(Repair::Sack, 20_000), [(1_050, 3)]);
}

#[test]
fn a_hole_at_the_end_is_rescued() {
    // RFC 6675 §4, NextSeg rule (4): nothing new to send, nothing known to be lost, room in the window: the highest
    // segment that was not reported goes once more. The third duplicate leaves 5..10 and the repair, seven; 5, 6 and 7
    // are reported, four.
    let config = Config { initial_window: 10, repair: Repair::Sack, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).lose(CLIENT, Kind::Data, &[1, 10]).run();
    assert_eq!(repairs(&bench), [(100, vec![1, 10])]);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
    assert_eq!(bench.ends[SERVER].received(), 10_000);
}

#[test]
fn each_recovery_has_a_rescue() {
    // RFC 6675 §4, NextSeg rule (4): one a recovery, not one a connection, whichever way the window comes down. Twenty
    // segments leave ten of the window, which ten more fill at two seconds. All of these but the
    // first and the last are reported: there is room for a rescue.
    for reduction in [Reduction::AtOnce, Reduction::Proportional] {
        let config = Config { initial_window: 20, repair: Repair::Sack, reduction, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 20_000).write_at(2_000, CLIENT, 10_000).lose(CLIENT, Kind::Data, &[1, 20, 21, 30]).run();
        assert_eq!(repairs(&bench), [(100, vec![1, 20]), (2_100, vec![21, 30])], "{reduction:?}");
        assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
        assert_eq!(bench.ends[SERVER].received(), 30_000);
    }
}
