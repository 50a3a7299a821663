//! Losses found by time and probed for (RFC 8985), and a window that comes down gradually (RFC 6937).

use crate::common::{Bench, CLIENT, Kind, plain};
use base::Span;
use tcp::{Config, Reduction, Repair, RtoFloor};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

/// Linux's ways of repair on the plain stack, with its shortest timeout.
fn repairing() -> Config {
    Config {
        repair: Repair::Rack,
        reduction: Reduction::Proportional,
        limited_transmit: true,
        rto_min: Span::from_ms(200),
        rto_floor: RtoFloor::Variance,
        ..plain()
    }
}

#[test]
fn half_of_the_window_goes_out_over_a_round_trip() {
    // RFC 6937 §3: 20 outstanding, the first lost; ssthresh 10. One acknowledgement a millisecond from 101 on, that of
    // segment k at 99 + k. The third report starts the recovery, and from then on every second one lets a segment out,
    // the retransmission first: (10 / 20) x delivered, rounded up. With 13 delivered 6 are out and 20 - 15 - 1 + 6 = 10
    // in the network, as many as there shall be; each further report is answered by a segment.
    let config = Config { initial_window: 20, limited_transmit: false, repair: Repair::Sack, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 60_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).run();
    let sent = |from: u64, to: u64| -> Vec<(u64, Vec<u64>)> {
        bench.flights(CLIENT).into_iter().filter(|flight| (from..=to).contains(&flight.0)).collect()
    };
    let expected: Vec<(u64, Vec<u64>)> = [(103, 1)]
        .into_iter()
        .chain((0..5).map(|k| (105 + 2 * k, 21 + k)))
        .chain((0..4).map(|k| (116 + k, 26 + k)))
        .map(|(at, segment)| (at, vec![segment]))
        .collect();
    assert_eq!(sent(100, 150), expected);
    assert_eq!(bench.ends[CLIENT].ssthresh(), 10_000.0);
    // What the retransmission completes arrives at 203 and opens the window again: 9 are out, and 10 fit.
    assert_eq!(sent(200, 203), [(203, vec![30])]);
    bench.assert_complete(60_000, 0);
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    // RFC 8985 §3.3: what was sent at 100 after it is acknowledged at 200.
    let config = Config { initial_window: 20, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 60_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).lose(CLIENT, Kind::Resent, &[1]).run();
    assert_eq!(bench.times(CLIENT, Kind::Resent), [100, 200]);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.recoveries), (0, 1));
    bench.assert_complete(60_000, 0);
}

#[test]
fn the_timer_starts_again_whenever_the_first_segment_is_sent_again() {
    // tcp_xmit_retransmit_queue. A round trip of 300 ms, which many have told, so that the timeout is 500. Of what is
    // written at 20000 the first segment and the fifth are sent again at 20300; the report of the fifth proves at 20600
    // that the first was lost again. Its third transmission has until 21100 and is acknowledged at 20900. If it is lost
    // too, the timer sends it then.
    for (lost, sent) in [(&[1][..], &[20_300, 20_300, 20_600][..]), (&[1, 3], &[20_300, 20_300, 20_600, 21_100])] {
        let config = Config { initial_window: 20, idle_restart: false, ..repairing() };
        let mut bench = Bench::new(&config);
        bench.delay = Span::from_ms(150);
        (0..=50).for_each(|k| {
            bench.write_at(400 * k, CLIENT, 20_000);
        });
        bench.lose(CLIENT, Kind::Data, &[1_001, 1_005]).lose(CLIENT, Kind::Resent, lost).run_to(20_200);
        assert_eq!(bench.ends[CLIENT].rto(&config).ns() / 1_000_000, 500);
        bench.close_at(20_201, CLIENT).run();
        let times: Vec<u64> = bench.packets(CLIENT, Kind::Resent).map(|packet| packet.at.ns() / 1_000_000).collect();
        assert_eq!(times, sent);
        bench.assert_complete(1_020_000, 0);
    }
}

#[test]
fn two_losses_wait_for_the_later_one() {
    // RFC 8985 §6.2 step 5 takes the longest time that is left, as tcp_rack_detect_loss does. The third segment's
    // report comes at 124; the second, sent at 12, is lost a round trip, a quarter of one and two ticks after that.
    let mut bench = Bench::new(&Config { initial_window: 10, ..repairing() });
    (0..3).for_each(|k| {
        bench.write_at(12 * k, CLIENT, 1_000);
    });
    bench.close_at(24, CLIENT).lose(CLIENT, Kind::Data, &[1, 2]).run();
    // Of both, which go out one after the other as the window comes down.
    assert_eq!(bench.times(CLIENT, Kind::Resent), [139, 239]);
    bench.assert_complete(3_000, 0);
    // The third of four is only late: its report comes at 126, after that of the fourth, and a round trip is 106 then.
    // The second is lost at its own time.
    let mut bench = Bench::new(&Config { initial_window: 10, ..repairing() });
    for at in [0, 10, 20, 24] {
        bench.write_at(at, CLIENT, 1_000);
    }
    bench.close_at(24, CLIENT).lose(CLIENT, Kind::Data, &[2]).delay(CLIENT, Kind::Data, &[3], Span::from_ms(6)).run();
    assert_eq!(bench.times(CLIENT, Kind::Resent), [143]);
    bench.assert_complete(4_000, 0);
}

#[test]
fn a_loss_with_little_behind_it_waits_for_reordering() {
    // §6.2 step 4: one report is no proof. A quarter of the shortest round trip, 25 ms, and Linux's two ticks.
    let mut bench = Bench::new(&repairing());
    bench.write(CLIENT, 2_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1]).run();
    assert_eq!(bench.times(CLIENT, Kind::Resent), [127]);
    assert_eq!(bench.ends[CLIENT].stats().recoveries, 1);
    bench.assert_complete(2_000, 0);
    // The late one comes within that time: nothing is sent again.
    let mut bench = Bench::new(&repairing());
    bench.write(CLIENT, 2_000).close(CLIENT).delay(CLIENT, Kind::Data, &[1], Span::from_ms(24)).run();
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
    bench.assert_complete(2_000, 0);
}

#[test]
fn a_lost_tail_is_probed_for() {
    // §7.2: two round trips (and two ticks) after the last acknowledgement, which was at 100; the probe is the last
    // segment. It is reported at 402, and four was sent long before it.
    let config = Config { initial_window: 5, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 5_000).close(CLIENT).lose(CLIENT, Kind::Data, &[4, 5]).run();
    assert_eq!(bench.flights(CLIENT)[1..], [(302, vec![5]), (402, vec![4])]);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.recoveries), (0, 1));
    bench.assert_complete(5_000, 0);
}

#[test]
fn a_probe_is_new_data_if_there_is_any() {
    // §7.3: all of the first flight, sent at 100, is lost; the fifth goes out beyond the window.
    let config = Config { initial_window: 4, handshake: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000).close(CLIENT).lose(CLIENT, Kind::Data, &[1, 2, 3, 4]).run();
    assert_eq!(bench.flights(CLIENT)[..2], [(100, numbers(1, 4)), (302, vec![5])]);
    // Its report proves all four lost; one is sent again at once, the others as the window of two allows.
    assert_eq!(bench.flights(CLIENT)[2].0, 402);
    let stats = bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.recoveries), (0, 1));
    bench.assert_complete(20_000, 0);
}

#[test]
fn a_loss_that_the_probe_repaired_is_answered_for() {
    // §7.4.2: the last of ten is lost. It waits for 2 SRTT and the time for a delayed acknowledgement, or, if that is
    // earlier as here, for the retransmission timeout: ten samples of 100 ms leave a variation of 50 ms x 0.75^9 x 4,
    // less than the 200 ms: 300 ms after the acknowledgements of 100.
    let config = Config { initial_window: 10, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).lose(CLIENT, Kind::Data, &[10]).write_at(2_000, CLIENT, 1_000).run_to(1_999);
    assert_eq!(bench.times(CLIENT, Kind::Resent), [400]);
    assert_eq!(bench.ends[CLIENT].ssthresh(), f64::INFINITY);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
    // The acknowledgement of more than the probe tells the two apart: nothing came twice.
    let before = bench.ends[CLIENT].cwnd();
    bench.run_to(2_100);
    assert!(bench.ends[CLIENT].ssthresh() <= before / 2.0 + 500.0, "{}", bench.ends[CLIENT].ssthresh());
}

#[test]
fn a_needless_probe_costs_nothing() {
    // The acknowledgements of all ten are late by 150 ms. The probe at the tail was needless, its duplicate says.
    let config = Config { initial_window: 10, handshake: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000);
    bench.delay(
        crate::common::SERVER,
        Kind::Ack,
        &numbers(1, 10).iter().map(|&n| n as usize).collect::<Vec<_>>(),
        Span::from_ms(150),
    );
    bench.write_at(2_000, CLIENT, 1_000).run();
    assert_eq!(bench.times(CLIENT, Kind::Resent), [302]);
    assert_eq!(bench.ends[CLIENT].ssthresh(), f64::INFINITY);
}

#[test]
fn a_loss_that_the_probe_repaired_is_answered_for_at_once_too() {
    // The same where the window comes down at once: half of what was outstanding then.
    let config = Config { reduction: Reduction::AtOnce, initial_window: 10, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).lose(CLIENT, Kind::Data, &[10]).write_at(600, CLIENT, 10_000).run_to(699);
    assert_eq!((bench.times(CLIENT, Kind::Resent), bench.ends[CLIENT].ssthresh()), (vec![400], f64::INFINITY));
    bench.run_to(700);
    assert_eq!((bench.ends[CLIENT].ssthresh(), bench.ends[CLIENT].stats().timeouts), (5_000.0, 0));
}

#[test]
fn a_lost_tail_is_probed_for_before_any_round_trip_is_known() {
    // The SYN was sent twice, so that the handshake is not measured (Karn), and the timer waits for 3 s (RFC 6298
    // §5.7). RFC 8985 §7.2: without a round trip the probe comes after a second.
    let config = Config { handshake: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 1_000).close(CLIENT).lose(CLIENT, Kind::Syn, &[1]).lose(CLIENT, Kind::Data, &[1]).run();
    let opened = bench.times(CLIENT, Kind::Data)[0];
    assert_eq!(bench.times(CLIENT, Kind::Resent)[0], opened + 1_000);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 1, "that of the SYN");
    bench.assert_complete(1_000, 0);
}
