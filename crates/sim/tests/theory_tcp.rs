//! Flows that share a bottleneck, against theory: equal flows get equal shares, and the shares of unequal round trips
//! follow from how their losses come.

use crate::common::{Ran, run};
use base::maths::ln;

/// RED: every packet has the same chance of being lost, whosever it is.
const RED: &str = "kind = \"red\", min = \"20p\", max = \"400p\", probability = 0.05, limit = \"2000p\"";
/// A step: everybody is told at once.
const STEP: &str = "kind = \"step\", threshold = \"100p\", limit = \"20000p\"";

/// `each` endless flows of each round-trip time over 40 Mb/s, measured for 200 s.
fn flows(discipline: &str, hosts: &str, rtts_ms: &[u32], each: usize) -> Ran {
    let block = |rtt| format!("[[traffic]]\nkind = \"bulk\"\nflows = {each}\nrtt = \"{rtt}ms\"\n");
    let blocks: String = rtts_ms.iter().map(block).collect();
    run(&format!(
        r#"
        duration = "220s"
        warmup = "20s"
        link = {{ rate = "40mbit", qdisc = {{ {discipline} }} }}
        tcp = {{ {hosts} }}
        {blocks}
        "#
    ))
}

/// The exponent `a` in throughput ~ 1 / RTT^a of flows of 40 and 160 ms, the wait in the queue included.
fn slope(ran: &Ran, each: usize) -> f64 {
    let shares: Vec<u64> = ran.outcome.tcp.bulk_bytes.chunks(each).map(|flows| flows.iter().sum()).collect();
    let wait = ran.number("forward.queue_delay_mean_s");
    ln(shares[0] as f64 / shares[1] as f64) / ln((0.16 + wait) / (0.04 + wait))
}

#[test]
fn equal_flows_have_equal_shares() {
    for hosts in [
        "stack = \"ns2\", cc = \"reno\"",
        "stack = \"ns2\", cc = \"newreno\"",
        "stack = \"ns2\"",
        "stack = \"ns2\", repair = \"sack\"",
        "stack = \"ns2\", cc = \"cubic\", repair = \"sack\"",
        "stack = \"linux\"",
    ] {
        let ran = flows(RED, hosts, &[40], 4);
        let shares = &ran.outcome.tcp.bulk_bytes;
        let mean = shares.iter().sum::<u64>() as f64 / 4.0;
        // A flow's throughput goes with the root of the packets from loss to loss, or with their power of 3/4, and
        // these spread as much as their mean: three times that for a quarter of the reductions.
        let chance = 3.0 * 0.75 / (ran.outcome.tcp.recoveries as f64 / 4.0).sqrt();
        for share in shares {
            assert!((*share as f64 / mean - 1.0).abs() < chance, "{hosts}: {shares:?}, chance {chance:.3}");
        }
    }
}

#[test]
fn short_round_trips_get_more_by_one_power_under_red() {
    // Padhye et al. 1998: the same loss rate makes the same window; the throughput is a window a round trip.
    for hosts in ["stack = \"ns2\", cc = \"reno\"", "stack = \"ns2\", cc = \"newreno\"", "stack = \"ns2\""] {
        let ran = flows(RED, hosts, &[40, 160], 4);
        // Reductions as the packets are shared, a fifth to the long ones: three times half of both roots.
        let reductions = ran.outcome.tcp.recoveries as f64;
        let chance = 1.5 * (1.0 / (0.8 * reductions) + 1.0 / (0.2 * reductions)).sqrt() / ln(4.0);
        assert!((slope(&ran, 4) - 1.0).abs() < chance, "{hosts}: {:.3}, chance {chance:.3}", slope(&ran, 4));
    }
}

#[test]
fn and_by_up_to_two_where_all_are_told_at_once() {
    // Lakshman and Madhow 1997: two powers if every flow is reduced every time. A step marks as long as the queue is
    // beyond it; a flow whose packets are elsewhere just then is passed over.
    let ran = flows(STEP, "stack = \"ns2\", ecn = \"on\"", &[40, 160], 2);
    let independent = flows(RED, "stack = \"ns2\", ecn = \"on\"", &[40, 160], 2);
    assert!(slope(&ran, 2) > slope(&independent, 2) && slope(&ran, 2) <= 2.0, "{:.2}", slope(&ran, 2));
}
