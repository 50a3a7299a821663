//! What disciplines that tell flows apart must do with flows that do not respond.
//!
//! Poisson flows of constant rates share a link that is too small for them. Nothing here is measured of TCP: the claim
//! is only what the disciplines' own equations say of their fixed point. Means are compared within four standard
//! errors from batches, as in the tests of theory.

use crate::common::{Parcel, built};
use aqm::{Cause, Egress, Headers, Tap};
use base::{Rate, Span, Stream, Time, maths};

/// Ten megabits a second: 1250 packets of 1000 bytes.
const RATE: Rate = Rate::from_bps(10_000_000);
const PACKET: u32 = 1000;
const BATCHES: usize = 40;

/// What became of each flow's packets, by batch.
struct Outcome {
    /// Packets delivered of each flow in each batch, a second.
    delivered: Vec<[f64; BATCHES]>,
    /// Packets lost of each flow.
    lost: Vec<u64>,
    /// The queue in packets, seen by arrivals.
    queue: f64,
}

impl Outcome {
    /// Mean rate of `flow` in packets a second, and its standard error.
    fn rate(&self, flow: usize) -> (f64, f64) {
        let batches = &self.delivered[flow];
        let n = BATCHES as f64;
        let mean = batches.iter().sum::<f64>() / n;
        let variance = batches.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    }

    /// Asserts that `flow` gets `share` of the `sent` packets a second, within four standard errors.
    fn gets(&self, flow: usize, sent: f64, share: std::ops::RangeInclusive<f64>) {
        let (mean, error) = self.rate(flow);
        let (low, high) = (share.start() * sent - 4.0 * error, share.end() * sent + 4.0 * error);
        assert!((low..=high).contains(&mean), "flow {flow}: {mean} +- {error} of {sent}");
    }

    /// Asserts that two flows get the same within four standard errors, and those within 1 % of it.
    fn share_alike(&self, one: usize, other: usize) {
        let ((first, a), (second, b)) = (self.rate(one), self.rate(other));
        let error = (a * a + b * b).sqrt();
        assert!(4.0 * error <= 0.01 * first, "flow {one}: {first} +- {error} is precise");
        assert!((first - second).abs() <= 4.0 * error, "flows {one} and {other}: {first} and {second} +- {error}");
    }
}

struct Losses(Vec<u64>);

impl Tap<Parcel> for Losses {
    fn dropped(&mut self, packet: Parcel, _cause: Cause, _now: Time) {
        self.0[packet.flow as usize] += 1;
    }
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {}
}

impl Headers<Parcel> for Losses {}

/// Flows of `rates` packets a second for `seconds`, of which the first fifth is not counted.
fn share(name: &str, written: &[(&str, &str)], rates: &[f64], seconds: u64) -> Outcome {
    let mut egress = Egress::new(RATE, built::<Parcel>(name, written, RATE, Stream::named(1, "q")));
    let mut tap = Losses(vec![0; rates.len()]);
    let mut streams: Vec<_> = (0..rates.len()).map(|flow| Stream::named(1, &format!("flow/{flow}"))).collect();
    let gap = |stream: &mut Stream, rate: f64| Span::from_secs_f64(-maths::ln(stream.open_unit()) / rate);
    let mut next: Vec<Time> =
        streams.iter_mut().zip(rates).map(|(stream, rate)| Time::ZERO + gap(stream, *rate)).collect();
    let (start, end) = (Time::ZERO + Span::from_secs(seconds / 5), Time::ZERO + Span::from_secs(seconds));
    let batch = Span::from_ns(end.since(start).ns() / BATCHES as u64);
    let mut outcome = Outcome { delivered: vec![[0.0; BATCHES]; rates.len()], lost: vec![], queue: 0.0 };
    let (mut number, mut seen) = (0, 0.0);
    loop {
        let flow = (0..next.len()).min_by_key(|flow| next[*flow]).expect("there are flows");
        let now = next[flow];
        while egress.next_event() <= now {
            let due = egress.next_event();
            if let Some(delivery) = egress.advance(due, &mut tap) {
                let index = delivery.at.since(start).ns() / batch.ns();
                if delivery.at >= start && index < BATCHES as u64 {
                    outcome.delivered[delivery.packet.flow as usize][index as usize] += 1.0 / batch.secs_f64();
                }
            }
        }
        if now >= end {
            break;
        }
        if now >= start {
            outcome.queue += f64::from(egress.backlog().packets);
            seen += 1.0;
        }
        number += 1;
        let parcel = Parcel { number, size: PACKET, ecn: base::Ecn::NotEct, flow: flow as u64 };
        egress.offer(parcel, now, &mut tap);
        next[flow] = now + gap(&mut streams[flow], rates[flow]);
    }
    outcome.queue /= seen;
    outcome.lost = tap.0;
    outcome
}

/// The queue's mean, which an integrating controller keeps at its reference up to what its share can have moved since
/// the start: at most its `range`, in steps of (b - a) an update.
fn assert_settled(outcome: &Outcome, reference: f64, range: f64, gain: f64, seconds: u64) {
    let bound = range / (gain * 160.0 * (seconds as f64));
    assert!((outcome.queue - reference).abs() <= bound, "a queue of {} within {bound} of {reference}", outcome.queue);
}

#[test]
fn afd_levels_fast_flows_and_leaves_slow_ones() {
    // Flows of 100, 300, 600 and 1200 packets a second into 1250: the last two exceed the fair share of 425.
    let rates = [100.0, 300.0, 600.0, 1200.0];
    // Gains a tenth of the published ones: the counts' own noise moves the share less. One sampled packet in one, 2000
    // remembered: a flow of 300 has 273 of them, give or take 15, and is ten of those away from the share.
    let given = [("mean_packet", "1000b"), ("buffer", "2000"), ("sample", "1"), ("alpha", "0.17"), ("beta", "0.18")];
    let outcome = share("afd", &given, &rates, 1000);
    outcome.share_alike(2, 3);
    for (flow, rate) in [(0, 100.0), (1, 300.0)] {
        outcome.gets(flow, rate, 0.99..=1.0);
    }
    assert_settled(&outcome, 50.0, 2000.0, 0.01, 800);
}

#[test]
fn dcn_levels_flows_it_knows_and_never_touches_others() {
    // Forty flows that send a packet every two seconds are never known. Of those that send 300, 600 and 1200 a second
    // into the 1230 these leave, the last two exceed the fair share of 465.
    let rates: Vec<f64> = [300.0, 600.0, 1200.0].into_iter().chain([0.5; 40]).collect();
    let outcome = share("dcn", &[("mean_packet", "1000b"), ("a", "0.17"), ("b", "0.18")], &rates, 1000);
    outcome.share_alike(1, 2);
    outcome.gets(0, 300.0, 0.99..=1.0);
    assert_eq!(outcome.lost[3..], [0; 40], "what is not known is not signalled");
    // No count exceeds what the fastest flow sends in two periods.
    assert_settled(&outcome, 24.0, 2.0 * 1200.0 * 0.8, 0.01, 800);
}

#[test]
fn those_that_tell_flows_apart_spare_slow_ones() {
    // Twenty flows of 50 packets a second and one of 600 into 1250: RED loses the same 22 % of all. Of the fast one's
    // 600 a fair link would lose 350, and none of the others.
    let rates: Vec<f64> = std::iter::once(600.0).chain([50.0; 20]).collect();
    let outcome = |name| {
        let mut given = vec![("mean_packet", "1000b"), ("probability", "0.1"), ("min", "10p"), ("max", "30p")];
        // Where it is a parameter.
        if name != "fred" && name != "choke" {
            given.push(("gentle", "true"));
        }
        let outcome = share(name, &given, &rates, 1000);
        (outcome.rate(0).0, (1..=20).map(|flow| outcome.rate(flow).0).sum::<f64>())
    };
    let (fast_red, slow_red) = outcome("red");
    // Batch means of some 15,000 packets: four standard errors are below 2 %, and the differences below a tenth and
    // more.
    assert!((fast_red / 600.0 / (slow_red / 1000.0) - 1.0).abs() < 0.02, "RED knows no flows: {fast_red} {slow_red}");
    for name in ["red_pd", "fred", "choke"] {
        let (fast, slow) = outcome(name);
        assert!(1000.0 - slow < 0.5 * (1000.0 - slow_red), "{name}: slow flows lose half as much: {slow}");
        assert!(fast - 250.0 < 0.5 * (fast_red - 250.0), "{name}: the fast one comes half as near: {fast}");
    }
}
