//! DCTCP: RFC 8257.

use crate::common::{Bench, CLIENT, Fate, Kind, SERVER, delayed, plain};
use base::{Ecn, Span};
use tcp::{Config, Control, EcnMode, Flags, Reduction, Repair};

fn dctcp(config: Config) -> Config {
    Config { ecn: EcnMode::On, control: Control::Dctcp, repair: Repair::Sack, ecn_floor: 2, ..config }
}

/// The acknowledgements of the server: how many segments, and whether they echo.
fn echoes(bench: &Bench) -> Vec<(u64, bool)> {
    let acks = bench.packets(SERVER, Kind::Ack);
    acks.map(|packet| ((packet.segment.ack - 1) / 1_000, packet.segment.flags.has(Flags::ECE))).collect()
}

#[test]
fn every_mark_is_echoed_and_nothing_else() {
    let config = Config { initial_window: 10, ..dctcp(plain()) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[3, 4, 8]).run();
    let expected: Vec<(u64, bool)> = (1..=10).map(|k| (k, [3, 4, 8].contains(&k))).collect();
    assert_eq!(echoes(&bench), expected);
}

#[test]
fn delayed_acknowledgements_tell_marked_from_unmarked() {
    // RFC 8257 §3.2 and its figure 1. Segments arrive one a millisecond, 4 to 6 marked.
    let config = Config { initial_window: 10, ..dctcp(delayed()) };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[4, 5, 6]).run();
    // 1 and 2 together. 3 waits when 4 arrives with a mark: 3 alone, without echo, and 4 at once, as the state changed.
    // 5 and 6 together; 7 at once; 8 and 9; 10 by the timer.
    let expected = [(2, false), (3, false), (4, true), (6, true), (7, false), (9, false), (10, false)];
    assert_eq!(echoes(&bench), expected);
    assert_eq!(bench.times(SERVER, Kind::Ack), [51, 53, 53, 55, 56, 58, 159]);
}

#[test]
fn cwr_does_not_end_the_echo() {
    // RFC 8257 §3.2: the state follows the marks alone. All is marked; CWR is on the new data after each reduction.
    let config = Config { initial_window: 10, ..dctcp(plain()) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000);
    bench.script(|packet| if packet.kind == Kind::Data { Fate::Mark } else { Fate::Pass });
    bench.run();
    assert!(bench.packets(CLIENT, Kind::Data).any(|packet| packet.segment.flags.has(Flags::CWR)));
    assert!(echoes(&bench).iter().all(|&(_, echo)| echo));
}

#[test]
fn the_first_mark_halves_and_later_ones_by_their_share() {
    // Alpha starts at one. The first acknowledgement beyond sequence number 0 ends the first window: 15/16 after
    // segment 1. The mark on 5: 10 + 4 acknowledged, times 1 - 15/32.
    let config = Config { initial_window: 10, ..dctcp(plain()) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 1_000_000).mark(CLIENT, Kind::Data, &[5]).run_to(100);
    assert!((bench.ends[CLIENT].ssthresh() - 14_000.0 * (1.0 - 15.0 / 32.0)).abs() < 1e-6);
    assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, 1);
    // A quiet time takes a sixteenth of it each window; a mark much later hardly moves the window. 40 round trips of
    // one update each, to within the two at the ends.
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000_000).mark(CLIENT, Kind::Data, &[5]).run_to(4_050);
    let sent = bench.packets(CLIENT, Kind::Data).count();
    bench.mark(CLIENT, Kind::Data, &[sent + 1]).run_to(4_150);
    let before = bench.ends[CLIENT].cwnd();
    while bench.ends[CLIENT].stats().ecn_reductions < 2 {
        assert!(bench.step(base::Time::NEVER));
    }
    let left = bench.ends[CLIENT].cwnd() / before;
    let of = |updates: i32| 1.0 - (15.0_f64 / 16.0).powi(updates) / 2.0;
    assert!((of(38)..of(44)).contains(&left), "{left}");
}

#[test]
fn the_window_may_wait_for_what_was_in_flight() {
    // Two acknowledgements make the window twelve; the third echoes and, with alpha 15/16, leaves 12 - 5.625 = 6.375,
    // while segments up to 14 are outstanding. 4 to 10 echo nothing.
    let config = Config { initial_window: 10, ..dctcp(plain()) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 100_000).mark(CLIENT, Kind::Data, &[3]).run_to(199);
    // Each of these seven adds 1/cwnd.
    let after = |acknowledgements| (0..acknowledgements).fold(6.375_f64, |cwnd, _| cwnd + 1.0 / cwnd) * 1_000.0;
    assert!((bench.ends[CLIENT].cwnd() - after(7)).abs() < 1e-6);
    // Linux's CWR state: it comes down by and by (RFC 6937). 8 acknowledged from the mark on: 8 x 6.375 / 12 = 4.25,
    // five segments, 15 to 19. The window opens when the first of these is acknowledged, with 15 to 19 at 200.
    let mut bench = Bench::new(&Config { reduction: Reduction::Proportional, ..config });
    bench.write(CLIENT, 100_000).mark(CLIENT, Kind::Data, &[3]).run_to(199);
    assert_eq!(bench.flights(CLIENT)[1], (100, (11..=19).collect()));
    bench.run_to(200);
    assert!((bench.ends[CLIENT].cwnd() - after(5)).abs() < 1e-6, "{}", bench.ends[CLIENT].cwnd());
}

#[test]
fn a_loss_halves_whatever_alpha_is() {
    // RFC 8257 §3.5, also in a window that a mark has reduced by a little.
    let config = Config { initial_window: 10, ..dctcp(plain()) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000_000).mark(CLIENT, Kind::Data, &[5]).run_to(6_050);
    let sent = bench.packets(CLIENT, Kind::Data).count();
    bench.mark(CLIENT, Kind::Data, &[sent + 1]).lose(CLIENT, Kind::Data, &[sent + 5]).run_to(6_149);
    while bench.ends[CLIENT].stats().ecn_reductions < 2 {
        assert!(bench.step(base::Time::NEVER));
    }
    let reduced = bench.ends[CLIENT].cwnd();
    while bench.ends[CLIENT].stats().recoveries < 1 {
        assert!(bench.step(base::Time::NEVER));
    }
    // Growth between the two is that of a few acknowledgements: less than a segment.
    let left = bench.ends[CLIENT].ssthresh();
    assert!((left - reduced / 2.0).abs() < 1_000.0, "{left} of {reduced}");
}

#[test]
fn a_loss_that_a_probe_repaired_is_answered_as_a_mark_is() {
    // tcp_process_tlp_ack begins no recovery, and dctcp_state halves where one begins. Ten segments every 150 ms, whose
    // flights end two windows each: alpha comes down to (15/16)^40, 0.08. The last of all is lost, and the probe brings
    // it; what comes after tells that. Of forty 0.04 are taken off, in whole segments one.
    let config = Config {
        reduction: Reduction::Proportional,
        repair: Repair::Rack,
        whole_segments: true,
        cwnd_validation: true,
        initial_window: 40,
        rto_min: Span::from_ms(200),
        rto_floor: tcp::RtoFloor::Variance,
        ..dctcp(plain())
    };
    let mut bench = Bench::new(&config);
    (0..20).for_each(|k| {
        bench.write_at(150 * k, CLIENT, 10_000);
    });
    bench.lose(CLIENT, Kind::Data, &[200]).write_at(3_300, CLIENT, 1_000).run_to(3_349);
    assert_eq!((bench.packets(CLIENT, Kind::Resent).count(), bench.ends[CLIENT].ssthresh()), (1, f64::INFINITY));
    bench.run();
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.recoveries), (0, 0));
    assert_eq!(bench.ends[CLIENT].ssthresh(), 39_000.0);
    // In a reduction for a mark the window comes down once more, and that ends both: 20 of 40 are left of it, and as
    // nothing more is sent 10 have arrived and 11 may be out when the probe has repaired the loss (RFC 6937). Alpha is
    // (1 - 0.9 / 16) x 15/16 by then, one of ten in the first window and none in the second; 11 less 4 are 7.
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Data, &[10]);
    bench.write_at(600, CLIENT, 1_000).run_to(699);
    assert_eq!((bench.times(CLIENT, Kind::Resent).len(), bench.ends[CLIENT].ssthresh()), (1, 20_000.0));
    bench.run();
    assert_eq!(bench.ends[CLIENT].ssthresh(), 7_000.0);
}

#[test]
fn every_packet_is_capable_in_a_data_centre() {
    // RFC 8257 §3.6, with the identifier of L4S (RFC 9331).
    let config = Config {
        handshake: true,
        ect: Ecn::Ect1,
        ect_on_control: true,
        ect_on_retransmit: true,
        initial_window: 10,
        ..dctcp(plain())
    };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 30_000).close(CLIENT).lose(CLIENT, Kind::Data, &[3]).run();
    assert!(bench.packets(CLIENT, Kind::Resent).count() > 0);
    // A FIN without data too: it is a pure acknowledgement, and ECN-capable in Linux (testdata/linux/options).
    assert!(bench.packets(SERVER, Kind::Fin).count() > 0);
    for packet in &bench.story {
        assert_eq!(packet.segment.ecn, Ecn::Ect1, "{packet}");
    }
    // A mark on the handshake is no mark on data.
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 3_000).close(CLIENT).mark(CLIENT, Kind::Syn, &[1]).mark(SERVER, Kind::SynAck, &[1]).run();
    assert!(bench.story.iter().skip(2).all(|packet| !packet.segment.flags.has(Flags::ECE)));
    assert_eq!(bench.ends[SERVER].stats().ecn_reductions, 0);
}
