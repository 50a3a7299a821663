//! Whole runs against figures that can be worked out on paper.

use crate::common::{across, run};
use base::Rate;

const MBIT: u64 = 1_000_000;

/// Exchanges so far apart that each finds an idle network: all of them take the time that a hand finds.
#[test]
fn one_exchange_takes_the_sum_of_its_parts() {
    let ran = run(r#"
        duration = "2000s"
        warmup = "0s"
        link = { rate = "10mbit", reverse_rate = "2mbit", qdisc = { kind = "pfifo", limit = "100p" } }
        path.rtt = "80ms"
        tcp.stack = "freebsd4"
        [[traffic]]
        kind = "poisson"
        arrivals = "0.05hz"
        size = "10000b"
        request = "300b"
    "#);
    let delay = 40_000_000;
    let forward = |at, sizes: &[u64]| across(at, sizes, Rate::from_bps(10 * MBIT), delay);
    let reverse = |at, sizes: &[u64]| across(at, sizes, Rate::from_bps(2 * MBIT), delay);

    let syn = reverse(0, &[44])[0];
    let open = forward(syn, &[44])[0];
    // The handshake's ACK, and behind it the request.
    let asked = reverse(open, &[40, 40 + 300])[1];
    // 10,000 bytes are six full segments and one of 1,240, on which the FIN rides. An initial window of two; each ACK
    // of two segments opens the window by one, and is followed by a window update that opens nothing.
    let first = forward(asked, &[1500, 1500])[1];
    let second_window = forward(reverse(first, &[40, 40])[0], &[1500, 1500, 1500]);
    // The ACK of the third and fourth segment: a window of four, the fifth of which is still out.
    let third_window = forward(reverse(second_window[1], &[40, 40])[0], &[1500, 1280]);

    let times = ran.response_times_ns();
    assert!(times.len() > 50, "{} exchanges", times.len());
    assert!(times.iter().all(|&time| time == third_window[1]), "{:?} against {}", &times[..5], third_window[1]);
    let setups: Vec<u64> = ran.rows.exchanges.iter().map(|row| row.setup.ns()).collect();
    assert!(setups.iter().all(|&setup| setup == open), "{:?} against {open}", &setups[..5]);
}

/// A small packet does not overtake a large one of its connection, on the link or on the access link behind it: at
/// ten times the rate the access link still has the large one when the link has sent a packet of up to 150 bytes more.
#[test]
fn packets_of_a_connection_arrive_in_the_order_in_which_they_left() {
    let ran = run(r#"
        duration = "1000s"
        warmup = "0s"
        link = { rate = "100mbit", qdisc = { kind = "pfifo", limit = "100p" } }
        path.rtt = "20ms"
        tcp.stack = "linux"
        [[traffic]]
        kind = "poisson"
        arrivals = "0.1hz"
        size = "1468b"
        request = "300b"
    "#);
    let way = |at, sizes: &[u64]| across(at, sizes, Rate::from_bps(100 * MBIT), 10_000_000);
    let open = way(way(0, &[60])[0], &[60])[0];
    let asked = way(open, &[52, 52 + 300])[1];
    // The first segments are acknowledged at once: the ACK of the request goes before the answer, whose 1,468 bytes
    // are a full segment and one of 20 bytes.
    let answered = way(asked, &[52, 1500, 72])[2];
    let times = ran.response_times_ns();
    assert!(times.len() > 50, "{} exchanges", times.len());
    assert!(times.iter().all(|&time| time == answered), "{:?} against {answered}", &times[..5]);
}

/// A flow limited by its window sends a window a round trip, to the packet.
#[test]
fn a_window_each_round_trip() {
    // Each segment is acknowledged by itself, so a window of ten segments goes round in the time that one needs. That
    // is 80 ms and serialization, twice on access links and once on the link, of 1,500 and of 40 bytes.
    let round_trip: u64 = 80_000_000 + (1500 + 40) * (8 + 800 + 8);
    let ran = run(&format!(
        r#"
        duration = "{}ns"
        warmup = "{}ns"
        link = {{ rate = "10mbit", qdisc = {{ kind = "pfifo", limit = "100p" }} }}
        path.rtt = "80ms"
        tcp = {{ stack = "ns2", window = "14600b" }}
        [[traffic]]
        kind = "bulk"
        start = "0s"
        "#,
        150 * round_trip,
        50 * round_trip,
    ));
    let counts = ran.outcome.meters[0].window();
    assert_eq!((counts.offered, counts.delivered, counts.delivered_bytes), (1000, 1000, 1_500_000));
    assert_eq!(ran.outcome.meters[1].window().delivered, 1000);
    let goodput = 14_600.0 * 8.0 / (round_trip as f64 * 1e-9);
    // The rest is rounding of floating point numbers.
    assert!((ran.number("tcp.goodput_bps") / goodput - 1.0).abs() < 1e-12);
    // Segments that are clocked by acknowledgements never wait.
    assert_eq!(ran.number("forward.queue_delay_mean_s"), 0.0);
    assert_eq!(ran.number("forward.queue_mean_packets"), 0.0);
}

/// Twelve packets come for eight that the link carries: it is always busy, and a third is lost.
#[test]
fn an_overloaded_link_is_full_and_loses_the_rest() {
    let ran = run(r#"
        duration = "11s"
        warmup = "1s"
        link = { rate = "8mbit", qdisc = { kind = "pfifo", limit = "10p" } }
        path.rtt = "20ms"
        [[traffic]]
        kind = "cbr"
        rate = "12mbit"
        packet = "1000b"
        start = "0s"
    "#);
    let counts = ran.outcome.meters[0].window();
    // 1 ms a packet on the link; the window may begin and end between two of them.
    assert!(counts.delivered.abs_diff(10_000) <= 1, "{}", counts.delivered);
    assert!(counts.offered.abs_diff(15_000) <= 1, "{}", counts.offered);
    assert!(counts.dropped_total().abs_diff(5_000) <= 2, "{}", counts.dropped_total());
    assert!((ran.number("forward.utilisation") - 1.0).abs() <= 1.0 / 10_000.0);
    assert!((ran.number("udp.loss_ratio") - 1.0 / 3.0).abs() <= 2.0 / 15_000.0);
    // A full queue is one short from a departure until the next arrival, no later than 2/3 ms.
    let waiting = ran.number("forward.queue_mean_packets");
    assert!((10.0 - 2.0 / 3.0..=10.0).contains(&waiting), "{waiting} packets wait");
    // Never two arrivals within the time of one departure: every loss stands alone.
    assert_eq!(ran.number("forward.loss_run_mean"), 1.0);
}

/// Framing takes its share of the wire and nothing else.
#[test]
fn overhead_takes_its_share() {
    let ran = run(r#"
        duration = "11s"
        warmup = "1s"
        link = { rate = "8mbit", overhead = "38b", qdisc = { kind = "pfifo", limit = "10p" } }
        path.rtt = "20ms"
        [[traffic]]
        kind = "cbr"
        rate = "12mbit"
        packet = "1000b"
        start = "0s"
    "#);
    let carried = 10_000.0 * 1000.0 / 1038.0;
    let delivered = ran.outcome.meters[0].window().delivered as f64;
    assert!((delivered - carried).abs() <= 1.0, "{delivered} against {carried}");
    assert!((ran.number("forward.busy_ratio") - 1.0).abs() <= 1.0 / carried);
    assert!((ran.number("forward.utilisation") - 1000.0 / 1038.0).abs() <= 1.0 / carried);
}

/// Cells are sent whole: a full link is busy all the time, and IP packets have the part that cells leave them.
#[test]
fn cells_take_their_share() {
    for (framing, wire) in [("atm", 53 * 32), ("ptm", 1510 + 24)] {
        let ran = run(&format!(
            r#"
            duration = "11s"
            warmup = "1s"
            link = {{ rate = "8mbit", overhead = "10b", framing = "{framing}", qdisc = {{ kind = "pfifo", limit = "10p" }} }}
            path.rtt = "20ms"
            [[traffic]]
            kind = "cbr"
            rate = "12mbit"
            packet = "1500b"
            start = "0s"
            "#
        ));
        let carried = 10_000_000.0 / f64::from(wire);
        assert!((ran.number("forward.busy_ratio") - 1.0).abs() <= 1.0 / carried, "{framing}");
        assert!((ran.number("forward.utilisation") - 1500.0 / f64::from(wire)).abs() <= 1.0 / carried, "{framing}");
    }
}

/// Datagrams at twice the link's rate fill the discipline and the ring behind it: those that leave have waited for all
/// of both, and the backlog is the discipline's.
#[test]
fn a_device_queue_adds_to_the_wait_and_not_to_the_backlog() {
    let ran = run(r#"
        duration = "20s"
        warmup = "10s"
        link = { rate = "8mbit", device_queue = "20p", qdisc = { kind = "pfifo", limit = "10p" } }
        [[traffic]]
        kind = "cbr"
        rate = "16mbit"
        packet = "1000b"
        start = "0s"
    "#);
    assert!((ran.number("forward.utilisation") - 1.0).abs() < 1e-3);
    // Whoever is accepted has 29 packets before it, a millisecond each, of the first of which at least half is to come.
    let wait_s = ran.number("forward.queue_delay_mean_s");
    assert!((0.0285..=0.0291).contains(&wait_s), "{wait_s}");
    let backlog = ran.number("forward.queue_mean_packets");
    assert!((9.0..=10.0).contains(&backlog), "{backlog}");
    assert!((ran.number("forward.loss_ratio") - 0.5).abs() < 1e-3);
}

/// An access link slower than the bottleneck is the bottleneck, in both places.
#[test]
fn a_slower_access_link_sets_the_pace() {
    let ran = run(r#"
        duration = "40s"
        warmup = "20s"
        link = { rate = "100mbit", qdisc = { kind = "pfifo", limit = "1000p" } }
        path = { access_rate = "10mbit", rtt = "20ms" }
        tcp = { stack = "ns2", window = "146000b" }
        [[traffic]]
        kind = "bulk"
        start = "0s"
    "#);
    // A window of a hundred segments takes 120 ms to send, longer than the round trip: the sender never stops.
    let delivered = ran.outcome.meters[0].window().delivered;
    assert!(delivered.abs_diff(20_000_000 / 1200) <= 1, "{delivered}");
    assert_eq!(ran.number("forward.queue_delay_mean_s"), 0.0);
}
