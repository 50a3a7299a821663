//! Needless reductions taken back: timestamps (RFC 3522), reports of what came twice (RFC 2883, 3708), F-RTO (RFC
//! 5682); and how much reordering is allowed for (RFC 8985 §6.2).

use crate::common::{Bench, CLIENT, Kind, SERVER, plain};
use base::Span;
use tcp::{Config, Reduction, Repair, RtoFloor};

fn numbers(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

/// Linux's ways of repair on the plain stack, with its shortest timeout; what takes back is off.
fn repairing() -> Config {
    Config {
        repair: Repair::Rack,
        dsack: true,
        reduction: Reduction::Proportional,
        limited_transmit: true,
        rto_min: Span::from_ms(200),
        rto_floor: RtoFloor::Variance,
        initial_window: 10,
        handshake: true,
        ..plain()
    }
}

/// Ten segments leave at 100 and are late by 800 ms. The probe of 302, after two round trips and two ticks, is lost;
/// the timer expires 300 ms after it, for the handshake took 100 ms, and what it sends again is later still. The
/// application has more by then, which the window has no room for. The ten are acknowledged at 1000, before the timer
/// is due again.
fn spike(config: &Config) -> Bench {
    let mut bench = Bench::new(config);
    bench.write(CLIENT, 10_000).write_at(500, CLIENT, 30_000).close_at(500, CLIENT);
    bench.delay(CLIENT, Kind::Data, &(1..=10).collect::<Vec<_>>(), Span::from_ms(800));
    bench.lose(CLIENT, Kind::Resent, &[1]).delay(CLIENT, Kind::Resent, &[2], Span::from_secs(2));
    bench
}

#[test]
fn a_report_of_what_came_twice_comes_first() {
    // RFC 2883 §4: below the acknowledgement, and above it inside of another block.
    let config = Config { repair: Repair::Sack, initial_window: 4, handshake: false, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 1_000).lose(SERVER, Kind::Ack, &[1]).run();
    let again = bench.packets(SERVER, Kind::Ack).nth(1).expect("the segment came twice").segment;
    assert_eq!(again.sacks.duplicate(again.ack), Some((1, 1_001)));
    assert_eq!(again.sacks.above(again.ack).count(), 0);
    assert_eq!(again.size, 40 + 12);
    // 3 of 1..4 is late by 2 s and 1 is lost: the timer sends everything but 2 and 4 again. 3 comes twice, the second
    // time below what is acknowledged by then.
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 4_000).lose(CLIENT, Kind::Data, &[1]).delay(CLIENT, Kind::Data, &[3], Span::from_secs(2)).run();
    let last = bench.packets(SERVER, Kind::Ack).last().expect("it acknowledged").segment;
    assert_eq!((last.ack, last.sacks.duplicate(last.ack)), (4_001, Some((2_001, 3_001))));
}

#[test]
fn f_rto_tells_a_delay_from_a_loss() {
    // RFC 5682 §3.1: the first acknowledgement is of what was sent again, or so it seems; it lets two new segments out
    // (step 2b). The second is of something that was sent once (3b): the window is what it was, and the eight that
    // follow are acknowledgements as others.
    let mut bench = spike(&Config { frto: true, ..repairing() });
    bench.run_to(1_050);
    let flights = bench.flights(CLIENT);
    assert_eq!(flights[..3], [(100, numbers(1, 10)), (302, vec![10]), (602, vec![1])]);
    assert_eq!((flights[3].0, flights.len()), (1_000, 4));
    assert_eq!(flights[3].1[..4], [11, 12, 13, 14], "nothing else is sent again");
    let stats = *bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.undone, stats.retransmitted), (1, 1, 2));
    assert!(bench.ends[CLIENT].cwnd() >= 10_000.0);
    bench.run();
    bench.assert_complete(40_000, 0);
    // Without it the nine are sent again, in slow start.
    let mut bench = spike(&repairing());
    bench.run();
    assert_eq!(bench.ends[CLIENT].stats().undone, 0);
    assert!(bench.ends[CLIENT].stats().retransmitted > 4);
    assert!(bench.ends[CLIENT].ssthresh() <= 5_500.0);
    bench.assert_complete(40_000, 0);
}

#[test]
fn f_rto_believes_a_real_loss() {
    // Step 3a: all ten are lost, and the timer's retransmission gets through; the two new segments that its
    // acknowledgement lets out are reported beyond a hole, and the rest is sent again.
    let config = Config { frto: true, undo: true, timestamps: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000).close(CLIENT).lose(CLIENT, Kind::Data, &(1..=11).collect::<Vec<_>>()).run();
    assert_eq!(bench.ends[CLIENT].stats().undone, 0);
    assert!(bench.ends[CLIENT].stats().timeouts >= 1);
    bench.assert_complete(40_000, 0);
}

#[test]
fn a_timestamp_tells_at_once() {
    // RFC 3522: the first acknowledgement of 1000 echoes the stamp of 100, and the first was sent again at 602.
    let mut bench = spike(&Config { undo: true, timestamps: true, ..repairing() });
    bench.run_to(1_050);
    let stats = *bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.undone, stats.retransmitted), (1, 1, 2));
    assert!(bench.ends[CLIENT].cwnd() >= 10_000.0);
    bench.run();
    bench.assert_complete(40_000, 0);
}

#[test]
fn what_came_twice_tells_that_a_recovery_was_needless() {
    // One of ten is overtaken by 60 ms; the three reports at 200 make it lost, and it is sent again then. It arrives at
    // 210 and the retransmission at 250, which is reported at 300: the only one came twice.
    let config = Config { undo: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000).close(CLIENT).delay(CLIENT, Kind::Data, &[2], Span::from_ms(60)).run_to(299);
    assert_eq!(bench.times(CLIENT, Kind::Resent), [200]);
    // Eleven by then, for the first of the ten was acknowledged.
    assert_eq!(bench.ends[CLIENT].ssthresh(), 5_500.0);
    bench.run_to(300);
    assert_eq!(bench.ends[CLIENT].stats().undone, 1);
    assert!(bench.ends[CLIENT].ssthresh() > 1e9);
    assert!(bench.ends[CLIENT].cwnd() >= 10_000.0);
    bench.run();
    bench.assert_complete(40_000, 0);
}

#[test]
fn a_timestamp_tells_so_before_the_retransmission_is_heard_of() {
    // The same with timestamps: at 260 the late one is acknowledged, and echoed is a stamp of 100.
    let config = Config { undo: true, timestamps: true, dsack: false, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000).close(CLIENT).delay(CLIENT, Kind::Data, &[2], Span::from_ms(60)).run_to(260);
    let stats = *bench.ends[CLIENT].stats();
    assert_eq!((stats.retransmitted, stats.recoveries, stats.undone), (1, 1, 1));
    bench.run();
    bench.assert_complete(40_000, 0);
}

#[test]
fn reordering_that_was_seen_is_waited_for() {
    // RFC 8985 §6.2 step 4: once something came late that was sent once, three reports are no proof any more. The
    // second of ten comes 10 ms late first, which is reordering: the quarter of 25 ms is waited for from then on. In
    // the flight of 300 another is late by 20 ms, with more than three behind it, and nothing is sent again.
    let config = Config { undo: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_us(100);
    bench.write(CLIENT, 9_000).write_at(1_000, CLIENT, 9_000).close_at(1_001, CLIENT);
    bench.delay(CLIENT, Kind::Data, &[8], Span::from_ms(10)).delay(CLIENT, Kind::Data, &[12], Span::from_ms(20)).run();
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 0);
    bench.assert_complete(18_000, 0);
    // Without the first there is no such patience.
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_us(100);
    bench.write(CLIENT, 9_000).write_at(1_000, CLIENT, 9_000).close_at(1_001, CLIENT);
    bench.delay(CLIENT, Kind::Data, &[12], Span::from_ms(20)).run();
    assert_eq!(bench.packets(CLIENT, Kind::Resent).count(), 1);
    bench.assert_complete(18_000, 0);
}

#[test]
fn an_echo_of_a_mark_forbids_it() {
    // tcp_fastretrans_alert: the reduction was due all the same.
    let config = Config { undo: true, timestamps: true, ecn: tcp::EcnMode::On, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000).close(CLIENT).mark(CLIENT, Kind::Data, &[5]);
    bench.delay(CLIENT, Kind::Data, &[2], Span::from_ms(60)).run();
    assert_eq!(bench.ends[CLIENT].stats().undone, 0);
    assert!(bench.ends[CLIENT].ssthresh() <= 5_500.0);
    bench.assert_complete(40_000, 0);
}

#[test]
fn what_is_lost_all_the_same_is_sent_again_at_once() {
    // The delay of before, but the fifth of the ten is lost. The first acknowledgement of 1000 takes the timeout back;
    // the reports of 6, 7 and 8 at the same instant tell of the loss, in the very window that was out at the timeout.
    let config = Config { undo: true, timestamps: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).close_at(3_000, CLIENT).lose(CLIENT, Kind::Data, &[5]);
    bench.delay(CLIENT, Kind::Data, &[1, 2, 3, 4, 6, 7, 8, 9, 10], Span::from_ms(800));
    bench.lose(CLIENT, Kind::Resent, &[1]).delay(CLIENT, Kind::Resent, &[2], Span::from_secs(2)).run();
    assert_eq!(bench.flights(CLIENT)[..4], [(100, numbers(1, 10)), (302, vec![10]), (602, vec![1]), (1_000, vec![5])]);
    let stats = *bench.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.undone, stats.recoveries), (1, 1, 1));
    bench.assert_complete(10_000, 0);
}

#[test]
fn the_report_of_what_came_twice_counts_with_what_it_acknowledges() {
    // As above, with ten segments alone: the acknowledgement of the late one, at 210, is lost, and that of the
    // retransmission at 250 both acknowledges the second segment and reports that it came twice.
    let config = Config { undo: true, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 10_000).close_at(1_000, CLIENT).delay(CLIENT, Kind::Data, &[2], Span::from_ms(60));
    bench.lose(SERVER, Kind::Ack, &[10]).run();
    assert_eq!(bench.times(SERVER, Kind::Ack)[9..11], [210, 250]);
    let stats = *bench.ends[CLIENT].stats();
    assert_eq!((stats.retransmitted, stats.recoveries, stats.undone), (1, 1, 1));
    bench.assert_complete(10_000, 0);
}

#[test]
fn an_echo_that_comes_with_the_third_report_forbids_it_too() {
    // The fifth is marked, and its report makes the second, which is late, lost; of DCTCP's echoes it is the only one
    // (tcp_enter_recovery, ece_ack).
    let config = Config { undo: true, ecn: tcp::EcnMode::On, control: tcp::Control::Dctcp, ..repairing() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 40_000).close(CLIENT).mark(CLIENT, Kind::Data, &[5]);
    bench.delay(CLIENT, Kind::Data, &[2], Span::from_ms(60)).run();
    let echoes = bench.packets(SERVER, Kind::Ack).filter(|p| p.segment.flags.has(tcp::Flags::ECE)).count();
    let stats = *bench.ends[CLIENT].stats();
    assert_eq!((echoes, stats.recoveries, stats.undone), (1, 1, 0));
    bench.assert_complete(40_000, 0);
}

#[test]
fn a_timeout_after_one_that_was_taken_back_reduces() {
    // tcp_try_undo_loss, tcp_enter_loss. Nine of ten are late by 800 ms and the first is lost; what the timer sends at
    // 602 is lost too. The reports at 1000 are of what was sent once, which takes that timeout back. The timer
    // expires again, with nothing acknowledged in between: half of ten.
    let mut bench = Bench::new(&Config { frto: true, ..repairing() });
    bench.write(CLIENT, 10_000).close_at(5_000, CLIENT).lose(CLIENT, Kind::Data, &[1]);
    bench.delay(CLIENT, Kind::Data, &(2..=10).collect::<Vec<_>>(), Span::from_ms(800));
    bench.lose(CLIENT, Kind::Resent, &[1, 2]).run_to(1_100);
    let of = |bench: &Bench| {
        let (end, stats) = (&bench.ends[CLIENT], *bench.ends[CLIENT].stats());
        (stats.timeouts, stats.undone, end.ssthresh())
    };
    assert_eq!(of(&bench), (1, 1, f64::INFINITY));
    while bench.ends[CLIENT].stats().timeouts < 2 {
        assert!(bench.step(base::Time::NEVER));
    }
    assert_eq!(of(&bench), (2, 1, 5_000.0));
    bench.run();
    bench.assert_complete(10_000, 0);
}
