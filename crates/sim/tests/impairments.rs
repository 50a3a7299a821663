//! Losses and reordering on the path, and links whose rate is a trace's, in whole runs.

use crate::common::{Ran, run, run_with};
use base::Span;

/// Losses are drawn for every packet alike, and counted where they are: not at the bottleneck.
#[test]
fn a_path_loses_its_share() {
    let lossy = |loss: &str| {
        run(&format!(
            r#"
            duration = "60s"
            tcp.stack = "freebsd4"
            warmup = "0s"
            link = {{ rate = "20mbit", qdisc = {{ kind = "pfifo", limit = "10000p" }} }}
            path = {{ rtt = "40ms", {loss} }}
            [[traffic]]
            kind = "bulk"
            flows = 4
            [[traffic]]
            kind = "cbr"
            rate = "1mbit"
            packet = "500b"
            start = "0s"
            "#
        ))
    };
    let ran = lossy("loss = 0.01, reverse_loss = 0");
    let (udp, udp_lost) = (ran.number("udp.offered_packets"), ran.number("udp.lost_before_link_packets"));
    // 250 a second for 60 s, of which those of the last 20 ms, five, have not come to the link when it ends.
    assert!((14_994.0..=15_000.0).contains(&(udp + udp_lost)), "{udp} + {udp_lost}");
    assert_eq!(ran.number("forward.dropped_packets") + ran.number("reverse.dropped_packets"), 0.0);
    let tcp = ran.number("forward.offered_packets") - udp;
    let tcp_lost = ran.number("tcp.lost_before_link_packets");
    for (offered, lost) in [(udp, udp_lost), (tcp, tcp_lost)] {
        let sent = offered + lost;
        let error = 4.0 * (sent * 0.01 * 0.99).sqrt();
        assert!((lost - 0.01 * sent).abs() < error, "{lost} lost of {sent}");
    }
    // Forward goes data alone: each loss is of data, and each is repaired, but for those of the end.
    let again = ran.number("tcp.retransmitted_segments");
    assert!((tcp_lost - 100.0..=2.0 * tcp_lost).contains(&again), "{again} for {tcp_lost} losses");

    let without = lossy("loss = 0.0");
    assert!(without.summary["tcp"]["lost_before_link_packets"].is_null());
    assert_eq!(without.number("udp.lost_before_link_packets"), 0.0);
}

/// SYNs are sent at the start of the run, and again after three seconds.
#[test]
fn a_window_that_begins_with_the_run_has_its_first_instant() {
    let lost = |warmup: &str| {
        let ran = run(&format!(
            r#"
            duration = "2s"
            tcp.stack = "freebsd4"
            warmup = "{warmup}"
            link.rate = "20mbit"
            path = {{ rtt = "40ms", loss = 1.0, reverse_loss = 0 }}
            [[traffic]]
            kind = "bulk"
            flows = 3
            start = "0s"
            handshake = true
            "#
        ));
        ran.number("tcp.lost_before_link_packets")
    };
    assert_eq!((lost("0s"), lost("1ns")), (3.0, 0.0));
}

const USERS: &str = "
[[traffic]]
kind = 'web'
users = 30
[[traffic]]
kind = 'cbr'
rate = '1mbit'
[[traffic]]
kind = 'probe'
";

fn users(path: &str) -> Ran {
    run(&format!(
        "duration = '30s'\ntcp.stack = 'freebsd4'\nlink = {{ rate = '10mbit' }}\npath = {{ {path} }}\n{USERS}"
    ))
}

/// Holding all packets back for the same time is a longer path: the same run to the nanosecond.
#[test]
fn to_hold_back_all_is_a_longer_path() {
    let held = users("rtt = '30ms', reorder = { share = 1, delay = '5ms' }");
    let longer = users("rtt = '40ms'");
    assert_eq!(held.summary, longer.summary);
    assert_eq!(held.response_times_ns(), longer.response_times_ns());
    assert!(held.rows.exchanges.len() > 20, "somebody asked");
}

/// Probes see each held-back packet 5 ms later than the others, and their share, within four standard errors.
#[test]
fn a_share_is_held_back() {
    let ran = run(r#"
        duration = "200s"
        warmup = "0s"
        path = { rtt = "20ms", reorder = { share = 0.1, delay = "5ms" }, reverse_reorder = { share = 0 } }
        [[traffic]]
        kind = "probe"
        interval = "1ms"
        direction = "both"
        flows = 2
    "#);
    let delays = |direction: u8| -> Vec<u64> {
        let rows = ran.rows.probes.iter().filter(|row| row.direction == direction);
        rows.filter_map(|row| row.delay).map(Span::ns).collect()
    };
    let [forward, reverse] = [0, 1].map(delays);
    let least = *forward.iter().min().expect("probes arrived");
    assert!(reverse.iter().all(|&delay| delay == least), "the reverse path has its own");
    let late = forward.iter().filter(|&&delay| delay >= least + 5_000_000).count() as f64;
    let n = forward.len() as f64;
    assert!((late - 0.1 * n).abs() < 4.0 * (n * 0.1 * 0.9).sqrt(), "{late} of {n}");
    // Two that reach the link at one instant wait for each other: 16 us on the link, and as much on the access link.
    let at_all = |delay: &u64| [least, least + 5_000_000].iter().any(|at| (*at..=*at + 32_000).contains(delay));
    assert!(forward.iter().all(at_all), "delays are one or the other");
}

fn traced(trace: &str, rest: &str) -> Ran {
    let text = format!(
        "duration = '20s'\nwarmup = '5s'\n[link]\ntrace = 'a.trace'\nqdisc = {{ kind = 'pfifo', limit = '100p' }}\n\
         [path]\nrtt = '40ms'\n{rest}"
    );
    run_with(&text, &|_| Ok(trace.to_owned()))
}

/// An endless flow that never lets the queue run dry takes every opportunity: 1500 bytes at each.
#[test]
fn a_trace_is_used_to_the_last_opportunity() {
    // 1, 1, 3 and 10 ms: four in 10 ms, 4.8 Mb/s.
    let bulk = "[[traffic]]\nkind = 'bulk'\nflows = 3\nstart = '0s'\n[tcp]\nstack = 'freebsd4'\nwindow = '1mb'\n";
    let ran = traced("1\n1\n3\n10\n", bulk);
    assert_eq!(ran.number("forward.delivered_packets"), 15.0 * 400.0);
    // But for the rounding of a quotient.
    assert!((ran.number("forward.utilisation") - 1.0).abs() < 1e-12);
    // Acknowledgements share opportunities, and use few of their bytes.
    assert!(ran.number("reverse.utilisation") < 0.05);
    assert!(ran.number("reverse.delivered_packets") > 15.0 * 190.0);
}

/// What arrives at the link at random waits for the next opportunity: of one each 10 ms 5 ms in the mean, and less than
/// 10 ms always, where no two meet.
#[test]
fn a_packet_waits_for_its_opportunity() {
    let ran = traced("10\n", "[[traffic]]\nkind = 'udp-poisson'\narrivals = '10hz'\npacket = '100b'\nstart = '0s'\n");
    let n = ran.number("forward.delivered_packets");
    assert!(n > 100.0, "{n} packets");
    // 15 of them fit into one opportunity, so that none waits for a second. Uniform: a standard deviation of 10 ms by
    // the root of 12.
    let error = 4.0 * 0.010 / 12.0_f64.sqrt() / n.sqrt();
    assert!((ran.number("forward.queue_delay_mean_s") - 0.005).abs() < error);
    assert!(ran.rows.queue.iter().all(|row| row.queue_delay_max <= Span::from_ms(10)));
}
