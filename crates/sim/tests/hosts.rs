//! Hosts with several connections: links that these share, and delays that come by a clock.

use crate::common::{self, run};

/// Twenty transfers that begin together between two hosts, or between forty.
fn begun_together(access: &str, hosts: &str) -> common::Ran {
    run(&format!(
        r#"
        duration = "20s"
        warmup = "0s"
        link = {{ rate = "1gbit", qdisc = {{ kind = "pfifo", limit = "10000p" }} }}
        path = {{ rtt = "20ms", access_rate = "10mbit", access = "{access}" }}
        [[traffic]]
        kind = "bulk"
        flows = 20
        hosts = {hosts}
        stack = "freebsd4"
        window = "16kb"
    "#
    ))
}

/// A hundred-fold link cannot hold anybody up: what holds them is the link of one host, or each one's own.
#[test]
fn the_connections_of_a_host_share_its_access_link() {
    let [own, shared, apart] = [("connection", "1"), ("host", "1"), ("host", "'own'")]
        .map(|(access, hosts)| begun_together(access, hosts).number("forward.throughput_bps"));
    // 16 kB windows: 20 connections of 16 kB in 20 ms and more ask for 20 * 6.5 Mb/s.
    assert!((9.5e6..=10e6).contains(&shared), "{shared}");
    assert!(own > 100e6, "{own}");
    assert_eq!(own, apart, "hosts with one connection each are as connections with links of their own");
}

/// A request and its answer are so far from all others that each finds the network idle. The request comes to an
/// instant of no relation to the clock, so that what it gains is uniform over a tick.
#[test]
fn a_delay_comes_by_the_clock_of_the_client() {
    let ran = |keys: &str| {
        let ran = run(&format!(
            r#"
            duration = "4000s"
            warmup = "0s"
            link = {{ rate = "1gbit", qdisc = {{ kind = "pfifo", limit = "100p" }} }}
            [[traffic]]
            kind = "poisson"
            arrivals = "0.2hz"
            size = "1000b"
            request = "300b"
            rtt = "43ms"
            hosts = 3
            stack = "ns2"
            {keys}
        "#
        ));
        ran.response_times_ns().iter().map(|&ns| ns as f64 / 1e6).collect::<Vec<f64>>()
    };
    let [without, clients, by_clock] = ["", "rtt_at = 'clients'", "rtt_at = 'clients'\nrtt_tick = '10ms'"].map(ran);
    assert_eq!(without, clients, "where the delay lies nobody sees who has the network to himself");
    // 43 ms are four ticks. Without a handshake the request alone is delayed: from three ticks to four.
    let sent = without[0] - 43.0;
    assert!(by_clock.iter().all(|&ms| (30.0..=40.0).contains(&(ms - sent))), "{by_clock:?}");
    let mean = by_clock.iter().sum::<f64>() / by_clock.len() as f64 - sent;
    let error = 10.0 / (12.0 * by_clock.len() as f64).sqrt();
    assert!((mean - 35.0).abs() < 4.0 * error, "{mean} of {} requests", by_clock.len());
}
