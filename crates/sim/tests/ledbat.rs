//! What RFC 6817 says that LEDBAT comes to, in whole runs: alone it fills the link with a queue of its target, beside
//! others it leaves them nearly all, flows that know the same base delay share, and a late-comer that takes the queue
//! of another for a part of the path takes the link. The stack is Linux', whose timestamps tell one way from the other.

use crate::common::{Ran, run};

/// What the link carries of segments of 1448 bytes in packets of 1500.
const GOODPUT_BPS: f64 = 20e6 * 1_448.0 / 1_500.0;

/// Runs `traffic` on a link of 20 Mb/s with a round trip of 40 ms. A packet of 1500 bytes takes 0.6 ms.
fn over(qdisc: &str, tcp: &str, traffic: &str) -> Ran {
    run(&format!(
        r#"
        duration = "300s"
        warmup = "200s"
        link.rate = "20mbit"
        link.reverse_rate = "20mbit"
        link.qdisc = {{ {qdisc} }}
        path.rtt = "40ms"
        tcp = {{ stack = "linux", cc = "ledbat", window = "4mb", {tcp} }}
        {traffic}
        "#
    ))
}

fn drop_tail(packets: u32) -> String {
    format!("kind = 'pfifo', limit = '{packets}p'")
}

/// The first flow, and the head of another.
const FIRST: &str = "[[traffic]]\nkind = 'bulk'\nstart = '0s'\n";
const ANOTHER: &str = "[[traffic]]\nkind = 'bulk'\n";

/// Bits a second of each flow.
fn rates(ran: &Ran) -> Vec<f64> {
    let seconds = ran.outcome.measured.secs_f64();
    ran.outcome.tcp.bulk_bytes.iter().map(|bytes| *bytes as f64 * 8.0 / seconds).collect()
}

#[test]
fn a_flow_alone_fills_the_link_with_a_queue_of_its_target() {
    for (target_ms, limit) in [(100.0, 400), (25.0, 400), (60.0, 1_000)] {
        let ran = over(&drop_tail(limit), &format!("ledbat_target = '{target_ms}ms'"), FIRST);
        let delay_ms = 1e3 * ran.number("forward.queue_delay_mean_s");
        assert!(ran.number("forward.utilisation") > 0.999);
        assert_eq!(ran.number("forward.loss_ratio"), 0.0);
        // Timestamps are whole milliseconds, an echo is up to a packet older than what is acknowledged, and the window
        // is whole segments, 0.6 ms each.
        assert!((delay_ms - target_ms).abs() < 2.0, "{delay_ms} ms for {target_ms} ms");
    }
}

/// What a flow of LEDBAT gets of the link beside one of CUBIC that comes ten seconds later.
fn share_beside_cubic(qdisc: &str) -> f64 {
    let ran = over(qdisc, "", &format!("{FIRST}{ANOTHER}cc = 'cubic'\nstart = '10s'\n"));
    let rates = rates(&ran);
    assert!(rates.iter().sum::<f64>() > 0.9 * GOODPUT_BPS, "{qdisc}: {rates:?}");
    rates[0] / GOODPUT_BPS
}

#[test]
fn it_yields_to_cubic_where_the_buffer_is_more_than_the_target() {
    // 400 packets are 240 ms. CUBIC leaves 0.7 of the window, so that no less than 0.7 x 280 - 40 = 156 ms wait, more
    // than the target: two segments a round trip of 196 ms are at most 0.12 Mb/s.
    let share = share_beside_cubic(&drop_tail(400));
    assert!(share < 0.12e6 / GOODPUT_BPS, "{share}");
    // 100 packets are 60 ms: less than the target. It has losses as others do, and does not yield.
    let share = share_beside_cubic(&drop_tail(100));
    assert!(share > 0.1, "{share}");
}

#[test]
fn an_aqm_keeps_the_queue_from_the_target_and_it_does_not_yield() {
    // RFC 7928 §5.4; Gong et al., "Fighting the bufferbloat: on the coexistence of AQM and low priority congestion
    // control".
    for qdisc in ["kind = 'codel'", "kind = 'pie'"] {
        let share = share_beside_cubic(qdisc);
        assert!(share > 0.2, "{qdisc}: {share}");
    }
}

#[test]
fn two_flows_that_know_the_same_base_delay_share() {
    let ran = over(&drop_tail(1_000), "", &format!("{FIRST}{ANOTHER}start = '200ms'\n"));
    let (delay_ms, rates) = (1e3 * ran.number("forward.queue_delay_mean_s"), rates(&ran));
    assert!((delay_ms - 100.0).abs() < 3.0, "{delay_ms} ms");
    // What one has more than the other by then, a segment a round trip for 200 ms, stays.
    assert!(rates.iter().all(|rate| (rate / GOODPUT_BPS - 0.5).abs() < 0.1), "{rates:?}");
}

#[test]
fn a_late_comer_takes_the_queue_for_the_path() {
    // The least delay that it knows is what the first flow left of 100 ms by then, and it steers to another 100 ms.
    // Above its target the first comes down to two segments a round trip: at 150 ms, half a segment a round trip of 190
    // ms, that takes 90 s for the 230 segments it has.
    let ran = over(&drop_tail(1_000), "", &format!("{FIRST}{ANOTHER}start = '60s'\n"));
    let (delay_ms, rates) = (1e3 * ran.number("forward.queue_delay_mean_s"), rates(&ran));
    assert!((185.0..205.0).contains(&delay_ms), "{delay_ms} ms");
    assert!(rates[1] > 0.95 * GOODPUT_BPS, "{rates:?}");
}
