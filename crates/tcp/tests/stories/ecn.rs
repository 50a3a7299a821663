//! ECN: RFC 3168, and ECN-capable SYN/ACKs (RFC 5562, Kuzmanovic 2005).

use crate::common::{Bench, CLIENT, Fate, Kind, SERVER, at_ms, delayed, plain, stack};
use base::{Ecn, Span};
use tcp::{Config, Control, DelayedAck, EcnMode, Flags, Reduction, Repair};

fn ecn() -> Config {
    Config { ecn: EcnMode::On, ..plain() }
}

fn has(bench: &Bench, from: usize, kind: Kind, flags: Flags) -> Vec<bool> {
    bench.packets(from, kind).map(|packet| packet.segment.flags.has(flags)).collect()
}

#[test]
fn both_ends_must_want_it() {
    for (client, server) in [(true, true), (true, false), (false, true)] {
        let of = |on| Config { handshake: true, ecn: if on { EcnMode::On } else { EcnMode::Off }, ..plain() };
        let mut bench = Bench::of(&of(client), &of(server));
        bench.write(CLIENT, 5_000).answer(SERVER, 5_000, 5_000, true).run();
        // RFC 3168 §6.1.1: ECE and CWR in the SYN, ECE alone in the SYN/ACK.
        let both = Flags::ECE.with(Flags::CWR);
        assert_eq!(has(&bench, CLIENT, Kind::Syn, both), [client]);
        assert_eq!(has(&bench, SERVER, Kind::SynAck, Flags::ECE), [client && server]);
        assert_eq!(has(&bench, SERVER, Kind::SynAck, Flags::CWR), [false]);
        let wanted = if client && server { Ecn::Ect0 } else { Ecn::NotEct };
        for packet in &bench.story {
            let expected = if packet.kind == Kind::Data { wanted } else { Ecn::NotEct };
            assert_eq!(packet.segment.ecn, expected, "{packet}");
        }
    }
}

#[test]
fn control_packets_and_retransmissions_are_not_capable() {
    // RFC 3168 §6.1.4 to §6.1.6.
    let config = Config { handshake: true, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 30_000).lose(CLIENT, Kind::Data, &[1, 12, 30]).close_at(9_000, CLIENT).run();
    assert!(bench.packets(CLIENT, Kind::Resent).count() >= 3 && bench.packets(CLIENT, Kind::Fin).count() == 1);
    for packet in &bench.story {
        assert_eq!(packet.segment.ecn.is_ect(), packet.kind == Kind::Data, "{packet}");
    }
    let config = Config { ect_on_retransmit: true, ..config };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 30_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1, 12]).run();
    assert!(bench.packets(CLIENT, Kind::Resent).all(|packet| packet.segment.ecn == Ecn::Ect0));
}

#[test]
fn one_mark_halves_the_window_once() {
    // RFC 3168 §6.1.2 and §6.1.3. Ten segments, the third marked.
    let config = Config { initial_window: 10, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 100_000).mark(CLIENT, Kind::Data, &[3]).run_to(100);
    // Two acknowledgements made the window twelve and let 11..14 out. The third halves it; with six allowed the
    // ninth is the first to let something out again, and that carries CWR.
    assert_eq!(bench.flights(CLIENT)[1], (100, (11..=16).collect()));
    assert_eq!(bench.ends[CLIENT].cwnd(), 6_000.0);
    bench.run_to(1_000);
    // Everything is echoed until segment 15 arrives, that is on 3 to 14, the end of the window that was reduced
    // included: all of it is the same congestion.
    let echoes = has(&bench, SERVER, Kind::Ack, Flags::ECE);
    let expected: Vec<bool> = (1..=echoes.len()).map(|k| (3..=14).contains(&k)).collect();
    assert_eq!(echoes, expected);
    let reduced: Vec<usize> =
        has(&bench, CLIENT, Kind::Data, Flags::CWR).iter().zip(1..).filter(|(cwr, _)| **cwr).map(|(_, k)| k).collect();
    assert_eq!(reduced, [15]);
    assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, 1);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 6_000.0);
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
}

#[test]
fn delayed_acknowledgements_echo_and_halve_alike() {
    let config = Config { initial_window: 10, ..ecn() };
    let config = Config { delayed_ack: delayed().delayed_ack, ..config };
    let mut bench = Bench::new(&config);
    // Nine and ten are acknowledged in one go, with everything else that was in flight acknowledged before: the
    // window halves all the same, not what is left in flight.
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[10]).run();
    assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, 1);
    // Five acknowledgements; the fifth has the echo and opens nothing.
    assert_eq!(bench.ends[CLIENT].cwnd(), 14_000.0 / 2.0);
}

#[test]
fn marks_everywhere_halve_the_window_once_a_round_trip() {
    let config = Config { initial_window: 40, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 400_000);
    bench.script(|packet| if packet.kind == Kind::Data { Fate::Mark } else { Fate::Pass });
    // Reductions to 20, 10 and 5 when the first acknowledgements of three windows are back.
    for (ms, cwnd) in [(100, 20_000.0), (200, 10_000.0), (300, 5_000.0)] {
        bench.run_to(ms);
        assert_eq!(bench.ends[CLIENT].cwnd(), cwnd, "at {ms} ms");
    }
}

#[test]
fn cubic_reduces_by_its_own_factor() {
    // RFC 9438 §4.6: 0.7 for an echo as for a loss.
    let config = Config { initial_window: 20, control: Control::Cubic, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &[1]).run();
    assert!((bench.ends[CLIENT].cwnd() - 14_000.0).abs() < 1.0, "{}", bench.ends[CLIENT].cwnd());
}

#[test]
fn a_mark_and_a_loss_in_one_window_are_one_congestion() {
    for repair in [Repair::NewReno, Repair::Sack] {
        // The mark is heard of first.
        let config = Config { initial_window: 10, repair, ..ecn() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 60_000).mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &[4]).run_to(800);
        let stats = *bench.ends[CLIENT].stats();
        assert_eq!((stats.ecn_reductions, stats.recoveries, stats.timeouts), (1, 1, 0), "{repair:?}");
        assert_eq!(bench.ends[CLIENT].ssthresh(), 5_000.0, "{repair:?}");
        // The loss is found first: RFC 3168 §6.1.2 wants CWR after that reduction too, so that the echo ends.
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 60_000).lose(CLIENT, Kind::Data, &[1]).mark(CLIENT, Kind::Data, &[6]).run_to(800);
        let stats = *bench.ends[CLIENT].stats();
        assert_eq!((stats.ecn_reductions, stats.recoveries, stats.timeouts), (0, 1, 0), "{repair:?}");
        let cwr = has(&bench, CLIENT, Kind::Data, Flags::CWR);
        assert!(cwr[10] && cwr.iter().filter(|set| **set).count() == 1, "{repair:?}: {cwr:?}");
    }
}

#[test]
fn a_timeout_is_told_with_cwr_too() {
    // All but the first of four are lost, and the first is marked: the echo on its acknowledgement halves the
    // window, the timer then brings it to one. Retransmissions do not carry CWR, the first new segment does.
    let config = Config { initial_window: 4, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 8_000).lose(CLIENT, Kind::Data, &[1, 2, 3]).run();
    assert_eq!(has(&bench, CLIENT, Kind::Data, Flags::CWR), [false, false, false, false, true, false, false, false]);
    assert!(has(&bench, CLIENT, Kind::Resent, Flags::CWR).iter().all(|cwr| !cwr));
}

#[test]
fn a_window_of_one_waits_for_the_timer() {
    // RFC 3168 §6.1.2: the echo arrives at 100, the timer of one second is started anew.
    let config = Config { initial_window: 1, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 3_000).mark(CLIENT, Kind::Data, &[1]).run();
    assert_eq!(bench.flights(CLIENT), [(0, vec![1]), (1_100, vec![2]), (1_200, vec![3])]);
    assert_eq!(has(&bench, CLIENT, Kind::Data, Flags::CWR), [false, true, false]);
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
}

#[test]
fn waiting_for_the_timer_ends_even_if_everything_is_acknowledged() {
    // Five small segments fit a window of one. The echo comes with the first acknowledgement, the others follow.
    let config = Config { initial_window: 1, ..ecn() };
    let mut bench = Bench::new(&config);
    (0..5).for_each(|k| {
        bench.write_at(k, CLIENT, 100);
    });
    bench.mark(CLIENT, Kind::Data, &[1]).write_at(500, CLIENT, 100).run();
    assert_eq!(bench.times(CLIENT, Kind::Data), [0, 1, 2, 3, 4, 1_100]);
    assert_eq!(bench.ends[SERVER].received(), 600);
}

#[test]
fn a_loss_while_waiting_for_the_timer_is_a_timeout() {
    let config = Config { initial_window: 1, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write_at(0, CLIENT, 100).write_at(1, CLIENT, 100).mark(CLIENT, Kind::Data, &[1]);
    bench.lose(CLIENT, Kind::Data, &[2]).run();
    assert_eq!(bench.times(CLIENT, Kind::Resent), [1_100]);
    assert_eq!(bench.ends[SERVER].received(), 200);
}

/// A request answered by ten segments; ECN of the given kind on both ends.
fn plus(mode: EcnMode) -> Bench {
    let config = Config { ecn: mode, handshake: true, initial_window: 4, ..stack_like() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 500).answer(SERVER, 500, 10_000, true);
    bench
}

fn stack_like() -> Config {
    let freebsd4 = stack("freebsd4");
    Config {
        syn_timer: freebsd4.syn_timer,
        synack_timer: freebsd4.synack_timer,
        rto_initial: freebsd4.rto_initial,
        ..plain()
    }
}

fn synacks(bench: &Bench) -> Vec<(u64, Ecn)> {
    bench.packets(SERVER, Kind::SynAck).map(|packet| (packet.at.ns() / 1_000_000, packet.segment.ecn)).collect()
}

#[test]
fn a_marked_syn_ack_starts_with_one_segment_at_once() {
    let mut bench = plus(EcnMode::Plus);
    bench.run();
    assert_eq!(synacks(&bench), [(50, Ecn::Ect0)]);
    assert_eq!(bench.flights(SERVER)[0], (150, vec![1, 2, 3, 4]));
    bench.assert_complete(500, 10_000);

    let mut bench = plus(EcnMode::Plus);
    bench.mark(SERVER, Kind::SynAck, &[1]).run();
    assert_eq!(synacks(&bench), [(50, Ecn::Ect0)]);
    // The echo is on the acknowledgement of the handshake, and on everything until the server says CWR.
    assert_eq!(has(&bench, CLIENT, Kind::Ack, Flags::ECE)[..2], [true, false]);
    assert_eq!(has(&bench, CLIENT, Kind::Data, Flags::ECE), [true]);
    assert_eq!(bench.flights(SERVER)[..3], [(150, vec![1]), (250, vec![2, 3]), (350, vec![4, 5, 6, 7])]);
    assert!(has(&bench, SERVER, Kind::Data, Flags::CWR)[0]);
    assert_eq!(bench.ends[SERVER].stats().ecn_reductions, 1);
    bench.assert_complete(500, 10_000);
}

#[test]
fn in_ns2_too_the_echo_of_a_marked_syn_ack_is_answered_once() {
    for repair in [Repair::Ns2NewReno, Repair::Ns2Sack1] {
        let config = Config { ecn: EcnMode::Plus, handshake: true, repair, mss: 1000, ..stack("ns2") };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 500).answer(SERVER, 500, 10_000, true);
        bench.mark(SERVER, Kind::SynAck, &[1]).run();
        assert_eq!(
            bench.flights(SERVER)[..3],
            [(150, vec![1]), (250, vec![2, 3]), (350, vec![4, 5, 6, 7])],
            "{repair:?}"
        );
        assert_eq!(bench.ends[SERVER].stats().ecn_reductions, 1);
        bench.assert_complete(500, 10_000);
    }
}

#[test]
fn the_echo_of_a_marked_syn_ack_may_ride_on_the_request() {
    let mut bench = plus(EcnMode::Plus);
    bench.mark(SERVER, Kind::SynAck, &[1]).lose(CLIENT, Kind::Ack, &[1]).run();
    assert_eq!(bench.flights(SERVER)[0], (150, vec![1]));
    bench.assert_complete(500, 10_000);
}

#[test]
fn try_once_says_a_marked_syn_ack_again_at_once() {
    let mut bench = plus(EcnMode::PlusTryOnce);
    bench.mark(SERVER, Kind::SynAck, &[1]).run_to(250);
    // RFC 5562 §3.2: the echo at 100, the second at 150, open at 200.
    assert_eq!(synacks(&bench), [(50, Ecn::Ect0), (150, Ecn::NotEct)]);
    assert_eq!(bench.times(CLIENT, Kind::Data), [200]);
    // Each of the two exchanges of packets took 100 ms; none took 200.
    bench.ends.iter().for_each(|end| assert_eq!(end.srtt(), Some(Span::from_ms(100))));
    bench.run();
    assert_eq!(bench.flights(SERVER)[..2], [(250, vec![1]), (350, vec![2, 3])]);
    assert_eq!(bench.ends[SERVER].stats().timeouts, 0);
    bench.assert_complete(500, 10_000);
}

#[test]
fn a_second_syn_ack_that_is_lost_takes_the_timer() {
    // Three seconds from the second: the first timer's value, as no timer has expired.
    let mut bench = plus(EcnMode::PlusTryOnce);
    bench.mark(SERVER, Kind::SynAck, &[1]).lose(SERVER, Kind::SynAck, &[2]).lose(CLIENT, Kind::Syn, &[2]).run();
    assert_eq!(synacks(&bench), [(50, Ecn::Ect0), (150, Ecn::NotEct), (3_150, Ecn::NotEct)]);
    bench.assert_complete(500, 10_000);
    // With the client's timer at work too, it is first.
    let mut bench = plus(EcnMode::PlusTryOnce);
    bench.mark(SERVER, Kind::SynAck, &[1]).lose(SERVER, Kind::SynAck, &[2]).run();
    assert_eq!(synacks(&bench), [(50, Ecn::Ect0), (150, Ecn::NotEct), (3_050, Ecn::NotEct)]);
    bench.assert_complete(500, 10_000);
}

#[test]
fn an_echo_that_is_lost_or_late_does_no_harm() {
    let mut bench = plus(EcnMode::PlusTryOnce);
    bench.mark(SERVER, Kind::SynAck, &[1]).lose(CLIENT, Kind::Ack, &[1]).run();
    assert_eq!(synacks(&bench), [(50, Ecn::Ect0), (3_050, Ecn::NotEct)]);
    bench.assert_complete(500, 10_000);
    // The echo arrives after the server's timer has said the SYN/ACK again, and that one is lost: an echo never
    // opens the connection, for the client that sent it has not.
    let mut bench = plus(EcnMode::PlusTryOnce);
    bench.mark(SERVER, Kind::SynAck, &[1]).delay(CLIENT, Kind::Ack, &[1], Span::from_ms(2_950));
    bench.lose(CLIENT, Kind::Syn, &[2]).lose(SERVER, Kind::SynAck, &[2]).run();
    bench.assert_complete(500, 10_000);
}

#[test]
fn a_syn_ack_is_ecn_capable_only_the_first_time() {
    for mode in [EcnMode::Plus, EcnMode::PlusTryOnce] {
        let mut bench = plus(mode);
        bench.lose(SERVER, Kind::SynAck, &[1]).run();
        assert_eq!(synacks(&bench), [(50, Ecn::Ect0), (3_050, Ecn::NotEct)], "{mode:?}");
        bench.assert_complete(500, 10_000);
    }
}

#[test]
fn a_client_without_ecn_gets_a_plain_syn_ack() {
    let server = Config { ecn: EcnMode::Plus, handshake: true, ..plain() };
    let client = Config { ecn: EcnMode::Off, ..server.clone() };
    let mut bench = Bench::of(&client, &server);
    bench.write(CLIENT, 500).answer(SERVER, 500, 10_000, true).run();
    assert_eq!(synacks(&bench), [(50, Ecn::NotEct)]);
    assert!(bench.story.iter().all(|packet| !packet.segment.flags.has(Flags::ECE) && !packet.segment.ecn.is_ect()));
    assert!(bench.now < at_ms(2_000));
    bench.assert_complete(500, 10_000);
}

#[test]
fn linux_hurries_to_tell_of_a_mark() {
    // __tcp_ecn_check_ce: two quick acknowledgements from the marked segment on; tcp_ecn_accept_cwr: one for CWR. Ten
    // segments arrive one a millisecond from 50 on, the third marked.
    let hurried = DelayedAck { hurries_for_ecn: true, ..delayed().delayed_ack };
    let config = Config { initial_window: 10, delayed_ack: hurried, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 100_000).mark(CLIENT, Kind::Data, &[3]).run_to(100);
    assert_eq!(bench.acks(SERVER)[..6], [(51, 2), (52, 3), (53, 4), (55, 6), (57, 8), (59, 10)]);
    // CWR is on the first new segment after the echo. Without the hurry half of such segments would wait for the next.
    bench.run_to(300);
    let first = bench.packets(CLIENT, Kind::Data).find(|packet| packet.segment.flags.has(Flags::CWR));
    let told = first.expect("the window was reduced").segment.end();
    let answer = bench.packets(SERVER, Kind::Ack).find(|packet| packet.segment.ack >= told).expect("it arrived");
    assert_eq!((answer.segment.ack, answer.segment.flags.has(Flags::ECE)), (told, false));
}

#[test]
fn linux_hurries_where_data_is_not_ecn_capable_after_other_data_was() {
    // __tcp_ecn_check_ce: it is probably sent again. The second segment is, and is acknowledged as soon as it comes;
    // the third, which is capable again, is the second of two quick acknowledgements; the fourth waits.
    for (hurries_for_ecn, expected) in [(true, [2_050, 2_150, 3_150]), (false, [2_150, 2_350, 3_150])] {
        let hurried = DelayedAck { hurries_for_ecn, ..delayed().delayed_ack };
        let mut bench = Bench::new(&Config { delayed_ack: hurried, ..ecn() });
        (0..4).for_each(|k| {
            bench.write_at(1_000 * k, CLIENT, 1_000);
        });
        bench.lose(CLIENT, Kind::Data, &[2]).run();
        let acks: Vec<u64> = bench.acks(SERVER)[1..].iter().map(|ack| ack.0).collect();
        assert_eq!(acks, expected);
    }
}

/// Ten segments, of which the first is marked and the others are lost.
fn one_marked_and_nine_lost(repair: Repair) -> Bench {
    let mut bench = Bench::new(&Config { initial_window: 10, repair, ..ecn() });
    let lost: Vec<usize> = (2..=10).collect();
    bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &lost).run();
    bench
}

#[test]
fn an_echo_does_not_keep_a_window_small_that_repairs_after_a_timeout() {
    for repair in [Repair::Reno, Repair::NewReno, Repair::Sack] {
        let bench = one_marked_and_nine_lost(repair);
        let sizes: Vec<usize> = bench.flights(CLIENT)[1..4].iter().map(|(_, flight)| flight.len()).collect();
        // The threshold is a quarter of ten segments: of the window after the echo.
        assert_eq!(sizes, [1, 2, 3], "{repair:?}");
        assert!(has(&bench, SERVER, Kind::Ack, Flags::ECE)[..6].iter().all(|echo| *echo), "{repair:?}");
        assert!(has(&bench, CLIENT, Kind::Resent, Flags::CWR).iter().all(|cwr| !cwr), "{repair:?}");
    }
}

#[test]
fn in_ns2_what_is_sent_again_ends_the_echo() {
    for repair in [Repair::Ns2NewReno, Repair::Ns2Sack1] {
        let bench = one_marked_and_nine_lost(repair);
        let told: Vec<bool> = has(&bench, CLIENT, Kind::Resent, Flags::CWR);
        assert!(told[0] && told[1..].iter().all(|cwr| !cwr), "{repair:?}: {told:?}");
        let echoes = has(&bench, SERVER, Kind::Ack, Flags::ECE);
        assert!(echoes[0] && echoes[1..].iter().all(|echo| !echo), "{repair:?}: {echoes:?}");
    }
}

#[test]
fn in_linux_an_echo_does_not_keep_a_window_small_that_repairs_after_a_timeout() {
    // Ten segments: the first is marked, the others are lost, and so is the probe. Retransmissions carry no CWR, so
    // that each of their acknowledgements echoes; the window grows nevertheless (tcp_may_raise_cwnd).
    let config = Config { initial_window: 10, reduction: Reduction::Proportional, repair: Repair::Rack, ..ecn() };
    let mut bench = Bench::new(&config);
    let lost: Vec<usize> = (2..=10).collect();
    bench.write(CLIENT, 10_000).close(CLIENT).mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &lost);
    bench.lose(CLIENT, Kind::Resent, &[1]).run();
    let repaired = [(1_302, vec![2]), (1_402, vec![3, 4]), (1_502, vec![5, 6, 7, 8]), (1_602, vec![9, 10])];
    assert_eq!(bench.flights(CLIENT)[2..], repaired);
    let echoes = has(&bench, SERVER, Kind::Ack, Flags::ECE);
    assert!(echoes.iter().all(|echo| *echo), "{echoes:?}");
}

#[test]
fn the_floor_of_marks_raises_no_window() {
    // Ten segments are the floor, and two the window: a mark leaves two, whichever way the window comes down. A floor
    // below half of twenty changes nothing.
    for reduction in [Reduction::AtOnce, Reduction::Proportional] {
        for (ecn_floor, initial_window, left) in [(10, 2, 2.0), (3, 20, 10.0)] {
            let config = floored(ecn_floor, initial_window, reduction);
            let mut bench = Bench::new(&config);
            bench.write(CLIENT, 60_000).mark(CLIENT, Kind::Data, &[1]).run_to(101);
            let threshold = bench.ends[CLIENT].ssthresh() / 1_000.0;
            assert_eq!(threshold, left, "{reduction:?}, floor {ecn_floor}");
            assert!(bench.ends[CLIENT].cwnd() <= 1_000.0 * f64::from(initial_window.max(3)), "{reduction:?}");
        }
    }
}

#[test]
fn the_floor_of_marks_holds_over_a_round_trip_too() {
    let mut bench = Bench::new(&floored(15, 20, Reduction::Proportional));
    bench.write(CLIENT, 60_000).mark(CLIENT, Kind::Data, &[1]).run_to(101);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 15_000.0);
}

fn floored(ecn_floor: u32, initial_window: u32, reduction: Reduction) -> Config {
    let repair = Repair::Sack;
    Config { ecn_floor, initial_window, reduction, repair, limited_transmit: true, ..ecn() }
}

#[test]
fn a_loss_right_behind_a_reduction_that_did_not_end_is_answered() {
    // tcp_fastretrans_alert, step D. The first of twenty is marked and the others are acknowledged, which leaves 20 of
    // 40; as nothing was sent since, the reduction goes on when there is more, and the first of that is lost. The third
    // report begins a recovery within it, and the fourth one a recovery of its own: half of 20, or, as the timestamp of
    // reports is that of what came in order, of the 19 to which the window has come down by then.
    for (timestamps, left, in_the_end) in [(false, 10_000.0, 5_000.0), (true, 9_000.0, 4_000.0)] {
        let config = Config {
            repair: Repair::Rack,
            reduction: Reduction::Proportional,
            undo: timestamps,
            timestamps,
            whole_segments: true,
            initial_window: 40,
            ..ecn()
        };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &[1]);
        bench.write_at(150, CLIENT, 60_000).close_at(151, CLIENT).lose(CLIENT, Kind::Data, &[21]).run_to(249);
        let of = |bench: &Bench| (bench.ends[CLIENT].ssthresh(), bench.ends[CLIENT].stats().recoveries);
        assert_eq!(of(&bench), (20_000.0, 0));
        bench.run_to(250);
        assert_eq!(of(&bench), (left, 2));
        assert_eq!(bench.times(CLIENT, Kind::Resent), [250]);
        bench.run();
        // The CWR was on what was lost, and the echo that goes on halves once more.
        assert_eq!(of(&bench), (in_the_end, 2));
        bench.assert_complete(80_000, 0);
    }
}

#[test]
fn a_timeout_right_behind_a_reduction_that_did_not_end_reduces() {
    // tcp_enter_loss: all is acknowledged that the reduction was for. 20 of 40 are left by the mark and half of that by
    // the timeout, for which all copies of the next segment are lost but the third.
    let config = Config { repair: Repair::Rack, reduction: Reduction::Proportional, initial_window: 40, ..ecn() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &[1]).write_at(150, CLIENT, 1_000).close_at(3_000, CLIENT);
    bench.lose(CLIENT, Kind::Data, &[21]).lose(CLIENT, Kind::Resent, &[1]).run_to(600);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 20_000.0);
    while bench.ends[CLIENT].stats().timeouts < 1 {
        assert!(bench.step(base::Time::NEVER));
    }
    assert_eq!(bench.ends[CLIENT].ssthresh(), 10_000.0);
    bench.run();
    bench.assert_complete(21_000, 0);
}
