//! What is counted, and that nothing is missed at the edges.

use crate::common::run;
use base::{Span, Time};

/// So many milliseconds after the start.
fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// The mean queue is a mean over time. Packets that a discipline drops after they have waited took their room too, and
/// a queue that fills up in the course of the window is no queue at rest.
#[test]
fn the_mean_queue_is_the_mean_over_time() {
    // CoDel drops at the head, and of a stream that heeds nothing ever more.
    let ran = run(r#"
        duration = "31s"
        warmup = "1s"
        record.interval = "100us"
        link = { rate = "8mbit", qdisc = { kind = "codel", limit = "1000p" } }
        path.rtt = "20ms"
        [[traffic]]
        kind = "cbr"
        rate = "16mbit"
        packet = "1000b"
    "#);
    let seen: Vec<f64> = ran
        .rows
        .queue
        .iter()
        .filter(|row| row.direction == 0 && row.time > at(1_000))
        .map(|row| f64::from(row.queue_packets))
        .collect();
    let sampled = seen.iter().sum::<f64>() / seen.len() as f64;
    // An arrival each 0.5 ms, and as many departures and drops: 4 changes by one packet a millisecond, and each is
    // seen no more than 0.1 ms late.
    let told = ran.number("forward.queue_mean_packets");
    assert!((told - sampled).abs() < 0.4, "{told} packets, {sampled} seen");
    assert!(ran.outcome.meters[0].window().dropped_total() > 1000, "the discipline dropped");
}

/// The rows of the window add up to the window, whether or not the interval divides anything.
#[test]
fn rows_add_up_to_the_window() {
    for interval in ["100ms", "300ms", "4100ms"] {
        let ran = run(&format!(
            r#"
            duration = "4100ms"
            warmup = "1s"
            cooldown = "50ms"
            record.interval = "{interval}"
            link = {{ rate = "8mbit", qdisc = {{ kind = "pfifo", limit = "10p" }} }}
            path.rtt = "20ms"
            [[traffic]]
            kind = "cbr"
            rate = "12mbit"
            packet = "1000b"
            "#
        ));
        let within = |row: &&record::QueueRow| row.direction == 0 && row.time > at(1_000) && row.time <= at(4_050);
        let rows: Vec<_> = ran.rows.queue.iter().filter(within).collect();
        let sum = |of: fn(&record::QueueRow) -> u32| rows.iter().map(|row| u64::from(of(row))).sum::<u64>();
        let window = ran.outcome.meters[0].window();
        assert_eq!(sum(|row| row.offered_packets), window.offered, "{interval}");
        assert_eq!(sum(|row| row.delivered_packets), window.delivered, "{interval}");
        assert_eq!(sum(|row| row.dropped_packets), window.dropped_total(), "{interval}");
        assert_eq!(ran.rows.queue.last().map(|row| row.time), Some(at(4_100)), "{interval}");
    }
}

/// Retries of a server that gives up half-way and starts again are not forgotten.
#[test]
fn retries_of_a_half_open_server_count() {
    // The SYN/ACKs go forward, where nothing gets through; the SYNs in reverse, where everything does.
    let ran = run(r#"
        duration = "1000s"
        warmup = "0s"
        path.rtt = "20ms"
        tcp.stack = "freebsd4"
        [link]
        rate = "10mbit"
        qdisc = { kind = "bfifo", limit = "1b" }
        reverse_qdisc = { kind = "pfifo", limit = "10p" }
        [[traffic]]
        kind = "bulk"
        direction = "reverse"
        start = "0s"
        size = "1000b"
    "#);
    let [syn_acks, syns] = [0, 1].map(|side| ran.outcome.meters[side].window().offered);
    assert!(syn_acks > syns, "the server's own timer expired");
    // The client's timer has expired after each SYN, and each SYN but the first is a repetition. A server that begins
    // sends a SYN/ACK that is none; all others are, one for each further SYN and one for each expiration but that upon
    // which it gives up. With g servers: expirations = syns + (syn_acks - syns + g), and repetitions = syns - 1 +
    // syn_acks - g.
    let tcp = &ran.outcome.tcp;
    assert_eq!(tcp.timeouts + tcp.retransmitted_segments, 2 * syn_acks + syns - 1);
    assert_eq!((tcp.flows_completed, tcp.flows_failed), (0, 1));
}

/// Every connection ends in exactly one of two ways, also if the last of its packets to go is lost: a repetition of
/// what had arrived, say, in a queue that takes longer than the timers.
#[test]
fn every_connection_completes_or_fails() {
    let ran = run(r#"
        duration = "4000s"
        warmup = "0s"
        link = { rate = "200kbit", qdisc = { kind = "pfifo", limit = "100p" } }
        path.rtt = { uniform = ["10ms", "400ms"] }
        tcp.stack = "freebsd4"
        [[traffic]]
        kind = "bulk"
        direction = "both"
        flows = 1000
        size = "3000b"
        start = { uniform = ["0s", "20s"] }
    "#);
    let tcp = &ran.outcome.tcp;
    assert!(ran.outcome.meters[0].window().dropped_total() > 1000, "packets were lost");
    assert_eq!(tcp.flows_completed + tcp.flows_failed, 1000);
    assert!(tcp.flows_completed > 500, "{} completed", tcp.flows_completed);
    assert!(tcp.delivered_bytes.iter().sum::<u64>() >= 3000 * tcp.flows_completed);
}
