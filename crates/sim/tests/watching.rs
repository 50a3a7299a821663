//! What is seen of flows: rows of senders against what their TCP is known to do, and what holds endless ones back.

use crate::common::{Ran, run};
use record::TcpRow;

/// One flow of ns-2's Newreno without a handshake, a row each 100 ms.
fn one_flow(rest: &str) -> Ran {
    run(&format!(
        r#"
        warmup = "0s"
        path.rtt = "100ms"
        record.flows = "100ms"
        tcp = {{ stack = "ns2", cc = "newreno" }}
        {rest}
        [[traffic]]
        kind = "bulk"
        start = "0s"
        "#
    ))
}

/// Segments of 1460 bytes.
const MSS: u64 = 1460;

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let ran = one_flow("duration = '1s'\nlink = { rate = '1gbit', qdisc = { kind = 'pfifo', limit = '10000p' } }");
    // Two segments leave at 0, and 100 ms and some microseconds later their acknowledgements have let out four. At the
    // k-th round trip, but for these microseconds, 2^k are out and all before are acknowledged. Up to 256, which take
    // 3 ms to send; all before them took as long, so that nothing of them is missing a whole round trip later.
    let rows = &ran.rows.tcp[..8];
    for (k, row) in (1..).zip(rows) {
        let sent = 1_u32 << k;
        assert!((row.time.secs_f64() - 0.1 * f64::from(k)).abs() < 1e-9, "{row:?}");
        assert_eq!((row.cwnd_segments, row.in_flight_segments, row.congestion_state), (sent, sent, 0), "{row:?}");
        assert_eq!(row.acknowledged_bytes, MSS * (u64::from(sent) - 2), "{row:?}");
        assert_eq!((row.ssthresh_segments, row.pacing_rate_bps, row.delivered_ce_segments), (None, None, None));
        assert_eq!((row.traffic, row.source, row.side, row.retransmitted_segments), (0, 0, 0, 0));
    }
    // Nothing waits: a round trip takes 100 ms, which this host measures in ticks of 10 ms.
    assert!(rows[1..].iter().all(|row| row.srtt.is_some_and(|srtt| (srtt.secs_f64() - 0.1).abs() < 0.011)), "{rows:?}");
}

#[test]
fn reno_s_window_is_a_saw() {
    let ran = one_flow("duration = '220s'\nlink = { rate = '10mbit', qdisc = { kind = 'pfifo', limit = '50p' } }");
    // Of the first overshoot nothing is left.
    let rows: Vec<&TcpRow> = ran.rows.tcp.iter().filter(|row| row.time.secs_f64() > 60.0).collect();
    let falls: Vec<usize> =
        (1..rows.len()).filter(|&k| rows[k].congestion_state == 3 && rows[k - 1].congestion_state != 3).collect();
    assert!(falls.len() >= 4, "{} teeth", falls.len());
    // What the path holds: 100 ms and its own transmission of 1500-byte packets at 10 Mb/s, 83.3 and 1, and a queue of
    // 50. One segment more is lost; it is noticed a round trip later, one segment on.
    let most = 83.3 + 1.0 + 50.0;
    for teeth in falls.windows(2) {
        let (from, to) = (teeth[0], teeth[1]);
        let peak = f64::from(rows[to - 1].cwnd_segments);
        assert!((most - 1.0..=most + 3.0).contains(&peak), "peak {peak}, {most}");
        let left = rows[to].ssthresh_segments.expect("it was reduced");
        assert!((left - peak / 2.0).abs() <= 1.0, "{left} of {peak}");
        // From where the recovery ended it grows by a segment a round trip: rows are 100 ms apart, and half of a
        // segment may be missing at either end, half a row's growth besides.
        let open = (from..to).find(|&k| rows[k].congestion_state == 0).expect("a recovery ends");
        let rounds: f64 = rows[open..to].iter().map(|row| 0.1 / row.srtt.expect("measured").secs_f64()).sum();
        let grown = peak - f64::from(rows[open].cwnd_segments);
        assert!((grown - rounds).abs() < 2.0 + 0.05 * rounds, "{grown} in {rounds} round trips");
    }
    // As many recoveries as teeth, each with a repair; and no timer went off.
    let last = rows[rows.len() - 1];
    assert!(u64::from(last.retransmitted_segments) >= falls.len() as u64, "{last:?}");
    assert!(rows.iter().all(|row| row.congestion_state != 4), "no timeout");
}

#[test]
fn looking_changes_nothing() {
    let with = |record: &str| {
        run(&format!(
            r#"
            duration = "20s"
            warmup = "5s"
            link = {{ rate = "5mbit", qdisc = {{ kind = "pie" }} }}
            {record}
            [[traffic]]
            kind = "web"
            users = 300
            direction = "forward"
            [[traffic]]
            kind = "bulk"
            flows = 3
            direction = "reverse"
            cc = "bbr"
            "#
        ))
    };
    let (plain, seen) = (with(""), with("record.flows = '70ms'"));
    assert_eq!(plain.outcome.events, seen.outcome.events);
    assert_eq!(plain.rows.exchanges, seen.rows.exchanges);
    assert_eq!(plain.rows.queue, seen.rows.queue);
    assert!(plain.rows.tcp.is_empty());
    // Pages come from the left, bulk data in reverse from the right, paced.
    let (web, bulk): (Vec<&TcpRow>, Vec<&TcpRow>) = seen.rows.tcp.iter().partition(|row| row.traffic == 0);
    assert!(web.iter().all(|row| row.side == 0 && row.source < 300 && row.pacing_rate_bps.is_none()));
    assert!(bulk.iter().all(|row| row.side == 1 && row.source < 3));
    assert!(
        bulk.iter()
            .filter(|row| row.time.secs_f64() > 5.0)
            .all(|row| row.pacing_rate_bps.is_some_and(|rate| rate > 1e4))
    );
    // At no instant more than 64 of a block.
    let at_once = web.chunk_by(|a, b| a.time == b.time).map(<[_]>::len).max();
    assert!(at_once.is_some_and(|most| (2..=64).contains(&most)), "{at_once:?}");
}

/// What held the flows of a block back: their goodput, and the shares of time of windows and access links.
fn held_back(tcp: &str, path: &str, rate: &str, flows: u32) -> [f64; 3] {
    let ran = run(&format!(
        r#"
        duration = "60s"
        warmup = "20s"
        link = {{ rate = "{rate}", qdisc = {{ kind = "pfifo", limit = "100p" }} }}
        path = {{ rtt = "80ms", {path} }}
        tcp = {{ {tcp} }}
        [[traffic]]
        kind = "cbr"
        rate = "1kbit"
        [[traffic]]
        kind = "bulk"
        flows = {flows}
        "#
    ));
    ["goodput_bps", "window_share", "access_share"].map(|what| ran.number(&format!("tcp.held_back.1.{what}")))
}

#[test]
fn windows_and_access_links_are_seen_to_hold_flows_back() {
    // Eleven segments of 1460 bytes fit in 16 kB. The odd one of them waits for the next to be acknowledged with it, so
    // that a round trip carries ten, at best eleven; it takes 80 ms, and 2.4 ms of the link for a pair.
    let [goodput, window, access] = held_back("stack = 'freebsd4'", "access_rate = '1gbit'", "10mbit", 1);
    let segments = goodput / (1460.0 * 8.0) * 0.0824;
    assert!((9.9..11.0).contains(&segments), "{segments} a round trip");
    assert!(window > 0.99 && access < 0.01, "{window} {access}");
    // Two flows over access links of 5 Mb/s fill these and not the link; 52 bytes in 1500 are headers.
    let [goodput, window, access] = held_back("stack = 'linux'", "access_rate = '5mbit'", "50mbit", 2);
    assert!((0.97..1.001).contains(&(goodput / (2.0 * 5e6 * 1448.0 / 1500.0))), "{goodput}");
    assert!(window < 0.05 && access > 0.95, "{window} {access}");
    // And here it is the link.
    let [goodput, window, access] = held_back("stack = 'linux'", "access_rate = '1gbit'", "10mbit", 2);
    assert!(goodput > 0.8e7, "{goodput}");
    assert!(window < 0.05 && access < 0.05, "{window} {access}");
}

#[test]
fn who_has_no_endless_flow_is_held_back_by_nothing() {
    let ran = run("duration = '2s'\n[[traffic]]\nkind = 'bulk'\nsize = '10kb'\n");
    assert!(ran.summary["tcp"]["held_back"].is_null());
}
