//! Sources of unresponsive packets and probes in whole runs, against what a hand finds.

use crate::common::{across, run, run_with};
use base::{Rate, Span};

const MBIT: u64 = 1_000_000;

/// Packets come at the instants of the file, to the nanosecond, with its sizes, and a source that starts later sends
/// all of it later.
#[test]
fn a_trace_is_sent_at_its_instants() {
    let file = "time_s,bytes\n# three packets\n0.25,1500\n0.25,100\n1.000000007,573\n";
    let ran = run_with(
        r#"
        duration = "10s"
        warmup = "0s"
        record.drops = true
        link = { rate = "10mbit", qdisc = { kind = "bfifo", limit = "1b" } }
        path = { rtt = "0s", access_rate = "1gbit" }
        [[traffic]]
        kind = "udp-trace"
        packets = "trace.csv"
        [[traffic]]
        kind = "udp-trace"
        packets = "trace.csv"
        start = "5s"
        "#,
        &|name| if name == "trace.csv" { Ok(file.to_owned()) } else { Err("no such file".to_owned()) },
    );
    // A queue that holds nothing drops every packet as it comes: when it has crossed the access link, 8 ns a byte, on
    // which the second waits for the first.
    let drops: Vec<(u64, u32)> = ran.rows.drops.iter().map(|row| (row.time.ns(), row.size_bytes)).collect();
    let once = [(250_012_000, 1500), (250_012_800, 100), (1_000_000_007 + 573 * 8, 573)];
    let later = once.map(|(at, size)| (at + 5_000_000_000, size));
    assert_eq!(drops, [once, later].concat());
    assert_eq!((ran.number("udp.offered_packets"), ran.number("udp.lost_packets")), (6.0, 6.0));
    assert!(ran.summary["tcp"]["goodput_bps"].is_null(), "nobody speaks TCP");
}

/// The queue sees the ECN field of the block: above its threshold, capable packets are marked and others pass; the
/// queue for L4S takes those with ECT(1), beside a Classic queue that is held at 15 ms.
#[test]
fn datagrams_have_the_ecn_field_of_their_block() {
    let counts = |ect: &str| {
        let ran = run(&format!(
            r#"
            duration = "10s"
            link = {{ rate = "10mbit", qdisc = {{ kind = "step", ecn = true }} }}
            [[traffic]]
            kind = "cbr"
            rate = "12mbit"
            ect = "{ect}"
            "#
        ));
        [("marked_by_cause", "forced"), ("dropped_by_cause", "forced")]
            .map(|(what, cause)| ran.number(&format!("forward.{what}.{cause}")) > 0.0)
    };
    assert_eq!(["not-ect", "ect0", "ect1"].map(counts), [[false, false], [true, false], [true, false]]);

    let delay = |ect: &str| {
        let ran = run(&format!(
            r#"
            duration = "20s"
            link = {{ rate = "20mbit", qdisc = {{ kind = "dualpi2" }} }}
            path = {{ rtt = "10ms" }}
            [[traffic]]
            kind = "bulk"
            flows = 4
            stack = "linux"
            [[traffic]]
            kind = "probe"
            ect = "{ect}"
            "#
        ));
        ran.number("probes.one_way_delay_s.p50")
    };
    // Half of the round trip; the packet in transmission and the call's own, 0.7 ms; against 15 ms on average.
    assert!((0.005..0.0057).contains(&delay("ect1")), "{}", delay("ect1"));
    assert!((0.015..0.025).contains(&delay("not-ect")), "{}", delay("not-ect"));
}

/// On/off sources have their mean rate: here a half of 2 Mb/s. A source's time on over t has the variance 2 t
/// a²b²/(a+b)³ (Cox 1962, §7.4); there are a hundred of them.
#[test]
fn on_off_sources_have_their_mean_rate() {
    let ran = run(r#"
        duration = "400s"
        warmup = "0s"
        link = { rate = "10mbit", qdisc = { kind = "pfifo", limit = "10000p" } }
        [[traffic]]
        kind = "onoff"
        flows = 100
        rate = "2mbit"
        packet = "250b"
        start = "0s"
    "#);
    let (n, t, rate): (f64, f64, f64) = (100.0, 400.0, 2e6 / 100.0 / 8.0 / 250.0);
    let sd = rate * (2.0 * t * 0.5_f64.powi(4)).sqrt() * n.sqrt();
    let offered = ran.number("udp.offered_packets");
    // Four standard errors, and up to a packet a source that is still on its way.
    let bound = 4.0 * sd + n;
    assert!((offered - n * t * rate / 2.0).abs() < bound, "{offered} packets, within {bound}");
    assert_eq!(ran.outcome.meters[0].window().delivered_bytes % 250, 0);
}

/// Random packets of exponential size into a long queue: M/M/1. At half load the mean wait in the queue is that of one
/// service, as long as in service.
#[test]
fn random_packets_of_exponential_size_wait_as_in_mm1() {
    let ran = run(r#"
        duration = "2100s"
        warmup = "100s"
        link = { rate = "8mbit", qdisc = { kind = "pfifo", limit = "100000p" } }
        [path]
        rtt = "0s"
        access_rate = "10gbit"
        [[traffic]]
        kind = "udp-poisson"
        flows = 10
        arrivals = "500hz"
        packet = { exponential = "1000b" }
    "#);
    // Sizes below 28 bytes become 28, which adds 28 - 1000 (1 - exp(-0.028)) = 0.4 bytes to the mean; those above
    // 65,535 are never drawn. So the load is 0.5002, the mean wait rho/(1 - rho) times 1.0004 ms.
    let wait = ran.number("forward.queue_delay_mean_s");
    // The wait's autocorrelation at half load: the sum over time is (1 + rho)/(1 - rho)² = 6 or fewer services (Morse
    // 1955), so that a million packets are worth at least 1e6/12 independent ones, of standard deviation
    // sqrt(rho (2 - rho))/(1 - rho) = 1.73 services.
    let bound = 4.0 * 1.73e-3 / (1e6_f64 / 12.0).sqrt() + 0.002e-3;
    assert!((wait - 1.001e-3).abs() < bound, "{wait} s, within {bound}");
    // A Poisson process: as many packets as their mean but for four standard deviations.
    assert!((ran.number("udp.offered_packets") - 1e6).abs() < 4.0 * 1e6_f64.sqrt());
}

/// On an empty network a probe takes propagation and three serializations, each of them, and nothing is lost.
#[test]
fn a_probe_finds_an_empty_network_as_it_is() {
    let ran = run(r#"
        duration = "61s"
        warmup = "1s"
        link = { rate = "10mbit", reverse_rate = "2mbit", qdisc = { kind = "pfifo", limit = "100p" } }
        path.rtt = "80ms"
        [[traffic]]
        kind = "probe"
        flows = 2
        direction = "both"
        start = "0s"
    "#);
    let forward = across(0, &[200], Rate::from_bps(10 * MBIT), 40_000_000)[0];
    let reverse = across(0, &[200], Rate::from_bps(2 * MBIT), 40_000_000)[0];
    let rows = &ran.rows.probes;
    let delays: Vec<(u8, u64)> = rows.iter().map(|row| (row.direction, row.delay.expect("not lost").ns())).collect();
    assert!(delays.iter().all(|&delay| delay == (0, forward) || delay == (1, reverse)), "{:?}", &delays[..2]);
    // One every 20 ms for a minute, each way; the last two or three are still under way at the end.
    assert!((2 * 3_000 - 6..=2 * 3_000).contains(&rows.len()), "{} rows", rows.len());
    assert_eq!(ran.number("probes.sent_packets") as usize, rows.len());
    assert_eq!(ran.number("probes.lost_packets"), 0.0);
    assert_eq!(ran.number("probes.jitter_mean_s"), 0.0);
    assert!(ran.summary["probes"]["loss_runs"].is_null());
    // The histogram has three digits.
    let tenth = ran.number("probes.one_way_delay_s.p10");
    assert!((tenth / (forward.min(reverse) as f64 * 1e-9) - 1.0).abs() < 1e-3, "{tenth}");
    assert!(rows.windows(2).all(|w| w[0].source != w[1].source || w[1].packet == w[0].packet + 1));
}

/// Probes arrive at a random instant of a constant-rate stream's full buffer: their share of losses and their delays
/// are those of the queue. Every loss of a probe is one of the link's.
#[test]
fn a_probe_sees_the_loss_and_the_delay_of_the_queue() {
    let ran = run(r#"
        duration = "1010s"
        warmup = "10s"
        record.drops = true
        link = { rate = "8mbit", qdisc = { kind = "red", min = "10p", max = "60p", limit = "100p", probability = 0.5 } }
        path.rtt = "20ms"
        [[traffic]]
        kind = "udp-poisson"
        arrivals = "1300hz"
        packet = "1000b"
        [[traffic]]
        kind = "probe"
        start = "0s"
    "#);
    let rows = &ran.rows.probes;
    let lost = rows.iter().filter(|row| row.delay.is_none()).count() as f64;
    let probe_drops =
        ran.rows.drops.iter().filter(|row| row.size_bytes == 200 && row.time.secs_f64() >= 10.01).count() as f64;
    // Sent within the window, or dropped within it: an access link and half a round trip apart, at both its edges.
    assert!((lost - probe_drops).abs() <= 2.0, "{lost} probes lost, {probe_drops} packets of theirs dropped");
    // Drops come in no runs beyond chance, with probability p each: four standard deviations of 50,000 trials.
    let (n, p) = (rows.len() as f64, ran.number("forward.loss_ratio"));
    assert!(p > 0.1, "{p} of all packets are lost");
    assert!((lost / n - p).abs() < 4.0 * (p * (1.0 - p) / n).sqrt(), "{} against {p}", lost / n);
    assert!((ran.number("probes.loss_ratio") - lost / n).abs() < 1e-12);
    // Their wait is that of the queue: 10 ms of propagation, serialization of 200 bytes (0.2 ms and twice 1.6 us), and
    // the mean wait, which varies slowly: RED's average has a memory of 500 packets, so that 1,300,000 packets are
    // worth 2,600, of a standard deviation that the run tells itself.
    let delays: Vec<f64> = rows.iter().filter_map(|row| row.delay.map(Span::secs_f64)).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let expected = 0.010 + 0.000_203_2 + ran.number("forward.queue_delay_mean_s");
    let bound = 4.0 * ran.number("forward.queue_delay_sd_s") / 2600_f64.sqrt();
    assert!((mean - expected).abs() < bound, "{mean} s against {expected}, within {bound}");
    // The summary is of the rows.
    let jitter: f64 = delays.windows(2).map(|w| (w[1] - w[0]).abs()).sum::<f64>() / (delays.len() - 1) as f64;
    assert!((ran.number("probes.jitter_mean_s") / jitter - 1.0).abs() < 1e-9);
    let runs: Vec<f64> = ran.summary["probes"]["loss_runs"]
        .as_array()
        .expect("there are losses")
        .iter()
        .map(|count| count.as_f64().expect("a number"))
        .collect();
    let losses: f64 = (1..).zip(&runs).map(|(length, count)| f64::from(length) * count).sum();
    assert_eq!(losses, lost);
}

/// What unresponsive sources send is a matter of the seed, and not of the discipline.
#[test]
fn the_seed_alone_says_what_is_sent() {
    let sent = |seed: u64, qdisc: &str| {
        let ran = run(&format!(
            r#"
            duration = "20s"
            warmup = "0s"
            seed = {seed}
            record.interval = "1ms"
            link = {{ rate = "1mbit", qdisc = {qdisc} }}
            [[traffic]]
            kind = "onoff"
            flows = 5
            rate = "2mbit"
            [[traffic]]
            kind = "udp-poisson"
            flows = 2
            arrivals = "100hz"
            packet = {{ uniform = ["40b", "1500b"] }}
            [[traffic]]
            kind = "probe"
            "#
        ));
        let offered: Vec<u32> =
            ran.rows.queue.iter().filter(|row| row.direction == 0).map(|row| row.offered_packets).collect();
        assert!(ran.number("udp.lost_packets") > 100.0);
        (offered, ran.rows.probes)
    };
    let first = sent(1, "{ kind = 'pfifo', limit = '20p' }");
    assert_eq!(sent(1, "{ kind = 'pfifo', limit = '20p' }"), first);
    let other = sent(1, "{ kind = 'codel' }");
    assert_eq!(other.0, first.0, "the same packets at the same instants");
    assert_ne!(other.1, first.1, "and another fate");
    assert_ne!(sent(2, "{ kind = 'pfifo', limit = '20p' }").0, first.0);
}
