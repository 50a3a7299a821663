//! CAKE in whole runs: who gets how much of the link, by flow, by host and by codepoint; what the ACK filter saves; and
//! that the shaper keeps its rate.

use crate::common::{Ran, run};
use record::{DropRow, ExchangeRow, QueueRow, Sink};

/// Jain's index of what each got: (sum x)^2 / (n sum x^2).
fn jain(got: &[f64]) -> f64 {
    let sum: f64 = got.iter().sum();
    sum * sum / (got.len() as f64 * got.iter().map(|x| x * x).sum::<f64>())
}

/// One flow of one pair of hosts beside eight of `hosts`, all alike but for that, over a link of 20 Mb/s for a minute:
/// the bytes of each. The round trip is one at which a flow alone makes full use of half the link behind COBALT:
/// nothing can give a flow more than it asks for.
fn one_beside_eight(isolation: &str, hosts: &str) -> Vec<f64> {
    let ran = run(&format!(
        r#"
        duration = "70s"
        warmup = "10s"
        link = {{ rate = "20mbit", qdisc = {{ kind = "cake", isolation = "{isolation}" }} }}
        path.rtt = "10ms"
        tcp.stack = "linux"
        [[traffic]]
        kind = "bulk"
        start = "0s"
        hosts = 1
        [[traffic]]
        kind = "bulk"
        start = "0s"
        flows = 8
        hosts = {hosts}
    "#
    ));
    assert!(ran.number("forward.utilisation") > 0.98, "{} of the link", ran.number("forward.utilisation"));
    ran.outcome.tcp.bulk_bytes.iter().map(|bytes| *bytes as f64).collect()
}

/// The bound of fairness that the field asks of disciplines that promise it; of equal shares the index is 1.
const FAIR: f64 = 0.99;

#[test]
fn flows_share_alike() {
    let got = one_beside_eight("flows", "1");
    assert!(jain(&got) >= FAIR, "{got:?}");
}

#[test]
fn hosts_share_alike_whatever_their_flows() {
    for isolation in ["triple-isolate", "dual-srchost", "dual-dsthost", "hosts", "srchost", "dsthost"] {
        let got = one_beside_eight(isolation, "1");
        let hosts = [got[0], got[1..].iter().sum()];
        assert!(jain(&hosts) >= FAIR, "{isolation}: {hosts:?}");
        // Where flows of a host have a queue each, they share its part alike.
        if isolation.starts_with("dual") || isolation.starts_with("triple") {
            assert!(jain(&got[1..]) >= FAIR, "{isolation}: {got:?}");
        }
    }
}

#[test]
fn isolation_tells_senders_from_receivers() {
    // Eight flows from one sender to a receiver each.
    for (isolation, counts) in
        [("dual-srchost", true), ("triple-isolate", true), ("dual-dsthost", false), ("dsthost", false)]
    {
        let got = one_beside_eight(isolation, r#"[1, "own"]"#);
        let eight = got[1..].iter().sum();
        let fair = if counts { jain(&[got[0], eight]) } else { jain(&got) };
        assert!(fair >= FAIR, "{isolation}: {got:?}");
    }
    // And the other way round.
    for (isolation, counts) in [("dual-dsthost", true), ("dual-srchost", false)] {
        let got = one_beside_eight(isolation, r#"["own", 1]"#);
        let eight = got[1..].iter().sum();
        let fair = if counts { jain(&[got[0], eight]) } else { jain(&got) };
        assert!(fair >= FAIR, "{isolation}: {got:?}");
    }
}

/// Four downloads over 50 Mb/s whose acknowledgements go back over 500 kb/s.
fn asymmetric(filter: &str, ecn: &str) -> Ran {
    run(&format!(
        r#"
        duration = "40s"
        warmup = "10s"
        [link]
        rate = "50mbit"
        reverse_rate = "500kbit"
        qdisc = {{ kind = "cake" }}
        reverse_qdisc = {{ kind = "cake", ack_filter = "{filter}" }}
        [path]
        rtt = "40ms"
        [tcp]
        stack = "linux"
        ecn = "{ecn}"
        [[traffic]]
        kind = "bulk"
        flows = 4
        start = "0s"
    "#
    ))
}

#[test]
fn the_ack_filter_thins_acknowledgements_and_costs_no_throughput() {
    for ecn in ["off", "on"] {
        let [without, with, aggressive] = ["off", "on", "aggressive"].map(|filter| asymmetric(filter, ecn));
        let goodput = |ran: &Ran| ran.number("tcp.forward_goodput_bps");
        let filtered = |ran: &Ran| ran.number("reverse.dropped_by_cause.filtered");
        let share = |ran: &Ran| filtered(ran) / ran.number("reverse.offered_packets");
        // 50 Mb/s are 4167 segments a second and 2083 acknowledgements of at least 40 bytes, 667 kb/s: a third more
        // than the way back carries, and so a quarter must go if the way there is to be full; of that, most by the
        // filter.
        assert_eq!(filtered(&without), 0.0);
        for ran in [&with, &aggressive] {
            assert!(share(ran) > 0.2, "ECN {ecn}: {} filtered", share(ran));
            assert!(goodput(ran) > goodput(&without), "ECN {ecn}: {} and {}", goodput(ran), goodput(&without));
            assert!(ran.number("forward.utilisation") > 0.95, "ECN {ecn}: {}", ran.number("forward.utilisation"));
            // What is filtered is no loss: the sender hears of everything.
            assert!(ran.number("reverse.dropped_packets") - filtered(ran) < 0.05 * filtered(ran));
        }
        // With fewer left in the queue, those wait less.
        let delay = |ran: &Ran| ran.number("reverse.queue_delay_mean_s");
        assert!(delay(&aggressive) < delay(&with) && delay(&with) < delay(&without), "ECN {ecn}");
    }
}

#[test]
fn a_way_back_that_is_not_full_is_not_filtered() {
    let ran = run(r#"
        duration = "20s"
        tcp.stack = "freebsd4"
        warmup = "5s"
        link = { rate = "20mbit", qdisc = { kind = "cake", ack_filter = "on" } }
        path.rtt = "40ms"
        [[traffic]]
        kind = "bulk"
        flows = 4
    "#);
    assert_eq!(ran.number("reverse.dropped_packets"), 0.0);
    assert!(ran.number("reverse.delivered_packets") > 1000.0);
}

/// Counts losses of unresponsive sources by block.
#[derive(Default)]
struct Losses(Vec<u64>);

impl Sink for Losses {
    fn exchange(&mut self, _row: &ExchangeRow) {}
    fn queue(&mut self, _row: &QueueRow) {}
    fn drop(&mut self, row: &DropRow) {
        let block = (row.flow >> 32 & 0xFFFF) as usize;
        self.0.resize(self.0.len().max(block + 1), 0);
        self.0[block] += u64::from(!row.is_mark);
    }
}

/// What sources of `codepoints`, each of which sends 20 Mb/s, get of a CAKE of 20 Mb/s: shares of all that is carried.
fn by_codepoint(diffserv: &str, codepoints: &[&str]) -> Vec<f64> {
    const SECONDS: u64 = 60;
    let blocks: String = codepoints
        .iter()
        .map(|dscp| {
            format!("[[traffic]]\nkind = 'cbr'\nrate = '20mbit'\npacket = '1000b'\nstart = '0s'\ndscp = '{dscp}'\n")
        })
        .collect();
    let text = format!(
        "duration = '{SECONDS}s'\nwarmup = '0s'\nrecord.drops = true\n[link]\nrate = '1gbit'\n\
         qdisc = {{ kind = 'cake', bandwidth = '20mbit', diffserv = '{diffserv}' }}\n{blocks}"
    );
    let no_files = |name: &str| Err(format!("{name}: tests read no files"));
    let resolved = scenario::resolve(&text, "test.toml", &[], &no_files).expect("a scenario");
    let mut losses = Losses::default();
    let scenario = resolved.scenario().expect("no load to calibrate");
    let outcome = sim::run(scenario, &mut losses, &mut |_| true).expect("nobody breaks it off");
    let offered = outcome.meters[0].window().offered / codepoints.len() as u64;
    losses.0.resize(codepoints.len(), 0);
    let carried: Vec<f64> = losses.0.iter().map(|lost| (offered - lost) as f64).collect();
    let all: f64 = carried.iter().sum();
    carried.into_iter().map(|packets| packets / all).collect()
}

#[test]
fn tins_have_the_shares_of_the_manual() {
    // A tin has its threshold as long as it wants it, tc-cake(8); best effort the rest. What is still queued in the end
    // counts as carried: at most 4 MiB of 150 MB, 3 %, in all.
    for (diffserv, codepoints, expected) in [
        ("diffserv3", &["CS0", "CS1", "EF"][..], &[0.6875, 0.0625, 0.25][..]),
        ("diffserv4", &["CS0", "CS1", "AF41", "EF"], &[0.1875, 0.0625, 0.5, 0.25]),
        ("besteffort", &["CS0", "CS1", "EF"], &[1.0 / 3.0; 3]),
    ] {
        let got = by_codepoint(diffserv, codepoints);
        for (got_one, expected) in got.iter().zip(expected) {
            assert!((got_one - expected).abs() < 0.03, "{diffserv}: {got:?}");
        }
    }
}

#[test]
fn the_shaper_keeps_its_rate_to_the_packet() {
    // Packets of 1000 bytes: 38 more on Ethernet; in ATM 1040 bytes are 22 cells of 53.
    for (keyword, wire) in [("raw", 1000), ("ethernet", 1038), ("pppoe-llcsnap", 1166)] {
        let ran = run(&format!(
            r#"
            duration = "12s"
            warmup = "2s"
            [link]
            rate = "1gbit"
            qdisc = {{ kind = "cake", bandwidth = "8mbit", overhead_keyword = "{keyword}" }}
            [[traffic]]
            kind = "cbr"
            rate = "12mbit"
            packet = "1000b"
            start = "0s"
        "#
        ));
        // 10 s at 8 Mb/s are ten million bytes on the wire; a packet more or less at either end.
        let carried = ran.number("forward.delivered_packets") * f64::from(wire);
        assert!((carried - 10_000_000.0).abs() <= f64::from(wire), "{keyword}: {carried}");
    }
}
