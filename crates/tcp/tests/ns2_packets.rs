//! The stack `ns2` against ns-2.35, packet by packet: flows of which packets are lost and marked by number, at random.
//! `benches/peers/ns2_packets.py` has drawn the cases and written down what ns-2 sends.
//!
//! `CASE=12 cargo test -p aqmlab-tcp --test all ns2_packets -- --nocapture` tells one flow.

#![expect(clippy::print_stdout, reason = "a flow is for people to read")]

use crate::common::{Bench, CLIENT, Fate, SERVER, stack};
use base::Span;
use serde_json::Value;
use std::env;
use std::path::Path;
use tcp::{Config, EcnMode, Repair};

const MSS: u32 = 1000;
/// One way. No whole number of round trips takes as long as the timer runs, but for rare ones.
const DELAY: Span = Span::from_ms(47);
/// ns-2's flows end then, ms.
const DURATION: u64 = 6_000;

/// So many packets of a flow are kept (`MOST_PACKETS`).
const KEPT: usize = 200;

/// What is sent: when (ms), and which segment.
type Sent = Vec<(u64, u64)>;

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// `WHEN:SEGMENTS` after `WHEN:SEGMENTS`.
fn sent_by_ns2(told: &str) -> Sent {
    let parse = |word: &str| word.parse::<u64>().expect("a number");
    let runs = |run: &str| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        parse(first)..=parse(last)
    };
    let flight = |word: &str| {
        let (at, segments) = word.split_once(':').expect("a time and segments");
        segments.split(',').flat_map(runs).map(|segment| (parse(at), segment)).collect::<Vec<_>>()
    };
    told.split(' ').flat_map(flight).collect()
}

fn sent_here(case: &Value) -> Sent {
    let repair = if text(&case["cc"]) == "Sack1" { Repair::Ns2Sack1 } else { Repair::Ns2NewReno };
    let window = u64::from(MSS) * number(&case["window"]);
    let initial_window = number(&case["initial"]) as u32;
    let mut bench = Bench::new(&Config { mss: MSS, window, initial_window, repair, ecn: EcnMode::On, ..stack("ns2") });
    bench.write(CLIENT, u64::from(MSS) * number(&case["segments"]));
    let [lost, marked, acks] = ["lost", "marked", "acks"].map(|key| numbers(&case[key]));
    let mut counts = [0; 2];
    bench.script(move |packet| {
        let count = counts[packet.from];
        counts[packet.from] += 1;
        match packet.from {
            CLIENT if lost.contains(&count) => Fate::Lose,
            CLIENT if marked.contains(&count) => Fate::Mark,
            SERVER if acks.contains(&count) => Fate::Lose,
            _ => Fate::Pass,
        }
    });
    bench.delay = DELAY;
    bench.run_to(DURATION - 1);
    if env::var("CASE").is_ok() {
        bench.story.iter().for_each(|packet| println!("{packet}"));
    }
    bench.flights(CLIENT).into_iter().flat_map(|(at, flight)| flight.into_iter().map(move |n| (at, n))).collect()
}

#[test]
fn every_packet_is_ns2s() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ns2/packets.json");
    let reference: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the reference is there")).expect("it is JSON");
    let told = env::var("CASE").ok().map(|word| word.parse::<usize>().expect("the number of a case"));
    let cases = reference["cases"].as_array().expect("cases");
    let mut different = vec![];
    for (k, case) in cases.iter().enumerate().filter(|(k, _)| told.is_none_or(|one| one == *k)) {
        let theirs = sent_by_ns2(text(&case["sent"]));
        let ours: Sent = sent_here(case).into_iter().take(KEPT).collect();
        if let Some(at) = (0..theirs.len().max(ours.len())).find(|&at| ours.get(at) != theirs.get(at)) {
            let near = |sent: &Sent| sent.iter().copied().skip(at.saturating_sub(3)).take(8).collect::<Sent>();
            different.push(format!("case {k}: packet {at} is {:?} and not {:?}", near(&ours), near(&theirs)));
        }
    }
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), cases.len(), different.join("\n"));
    assert_eq!(cases.len(), 200);
}
