//! Where laws come to rest, or what they estimate, when their equations can be solved: BLUE over an M/M/1/K queue,
//! CHOKe's leaky buffer, SRED's count of flows.
//!
//! Means are compared within four standard errors from batch means, as in the tests of theory.

use crate::common::{self, Deaf, Parcel, built, estimate};
use aqm::law::sred::Sred;
use aqm::registry::Site;
use aqm::{Arrival, Backlog, Egress, Law};
use base::{Ecn, FlowKey, Rate, Stream, Time, maths};

/// The share of steps that go up when BLUE signals with `p` before an M/M/1/K queue offered `load` times its rate.
///
/// After a freeze that is long against the queue's memory the queue is as at any time: i packets with probability
/// in proportion to r^i, where r = load (1 - p). The next step is up if the queue overflows before it is empty: the
/// ruin of a gambler who wins with r : 1, and at K with load : 1, since the limit is met before anything is drawn.
fn share_up(load: f64, p: f64, k: usize) -> f64 {
    let r = load * (1.0 - p);
    // Chances to overflow from i are in proportion to g(i) = 1 + 1/r + ... + r^-(i-1).
    let mut g = vec![0.0];
    (0..k).for_each(|i| g.push(g[i] + maths::powi(1.0 / r, i as u64)));
    let scale = load / ((1.0 + load) * g[k] - g[k - 1]);
    let weights: Vec<f64> = (0..=k).map(|i| maths::powi(r, i as u64)).collect();
    let up: f64 = weights.iter().zip(&g).map(|(weight, g)| weight * scale * g).sum();
    up / weights.iter().sum::<f64>()
}

#[test]
fn blue_rests_where_steps_up_and_down_balance() {
    // One step up undoes ten down: BLUE rests where one step in eleven goes up.
    let rate = Rate::from_bps(100_000_000_000);
    let k = 10;
    for load in [1.2, 1.6] {
        let (mut low, mut high) = (0.0, 1.0 - 1e-9);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            // The more is signalled, the fewer steps go up.
            if share_up(load, middle, k) > 1.0 / 11.0 { low = middle } else { high = middle }
        }
        let rest = low;
        // Nine wait and one is in transmission. 80 us a packet; 20 ms are 250 of them, and the queue forgets in
        // 1 / (1 - sqrt(r))^2, some 50. Steps small against what changes the share of steps.
        let written = [("limit", "9p"), ("increment", "0.002"), ("decrement", "0.0002"), ("freeze", "20ms")];
        let mut egress = Egress::new(rate, built::<Parcel>("blue", &written, rate, Stream::named(1, "q")));
        let (mut gaps, mut sizes) = (Stream::named(1, "gaps"), Stream::named(1, "sizes"));
        let (mut now_s, mut samples) = (0.0, vec![]);
        for number in 0..8_000_000 {
            now_s += -8e-5 / load * maths::ln(gaps.open_unit());
            let now = Time::from_secs_f64(now_s);
            while egress.next_event() <= now {
                egress.advance(now, &mut Deaf);
            }
            if number > 1_000_000 {
                samples.push(egress.gauges().probability.expect("BLUE has a probability"));
            }
            let size = (-1e6 * maths::ln(sizes.open_unit())).ceil() as u32;
            egress.offer(Parcel { number, size, ecn: Ecn::NotEct, flow: 0 }, now, &mut Deaf);
        }
        let (mean, error) = estimate(&samples);
        eprintln!("load {load}: {mean} +- {error} against {rest}");
        assert!(4.0 * error < 0.02 * rest, "load {load}: {mean} +- {error} is precise");
        assert!((mean - rest).abs() <= 4.0 * error, "load {load}: {mean} +- {error} against {rest}");
    }
}

/// The share of the link that an unresponsive flow gets under CHOKe when it sends `x` times the link's rate: the `s`
/// that solves (1 - s) ln((x + s) / (2 s)) = (x + s) / 2 (Tang, Wang and Low 2004, for so many other flows that these
/// are never matched, whose losses are small).
fn choke_share(x: f64) -> f64 {
    let excess = |s: f64| (1.0 - s) * maths::ln((x + s) / (2.0 * s)) - (x + s) / 2.0;
    // Falls in s.
    let (mut low, mut high) = (1e-300, 1.0_f64.min(x));
    for _ in 0..2000 {
        let middle = (low + high) / 2.0;
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

#[test]
fn choke_leaks_as_its_model_says() {
    // The peak of the model: 1 / (e + 1) at (2 e - 1) / (e + 1) times the link's rate.
    let e = maths::exp(1.0);
    let peak = choke_share((2.0 * e - 1.0) / (e + 1.0));
    assert!((peak - 1.0 / (e + 1.0)).abs() < 1e-9, "{peak}");
    // Packets of ever new flows keep the queue at 500, which stands for TCP; RED's own signals are off.
    const KEPT: u32 = 500;
    let rate = Rate::from_bps(8_000_000);
    for dialect in ["paper", "linux"] {
        let written = [
            ("dialect", dialect),
            ("limit", "100000p"),
            ("min", "1p"),
            ("max", "90000p"),
            ("probability", "0"),
            ("wq", "1"),
        ];
        for x in [0.3, 0.8, 1.193, 2.0, 4.0] {
            let mut egress = Egress::new(rate, built::<Parcel>("choke", &written, rate, Stream::named(1, "q")));
            let mut gaps = Stream::named(1, "gaps");
            let mut number = 0;
            let mut fill = |egress: &mut Egress<Parcel>, now: Time| {
                while egress.backlog().packets < KEPT {
                    number += 1;
                    egress.offer(Parcel { number, size: 1000, ecn: Ecn::NotEct, flow: number }, now, &mut Deaf);
                }
            };
            let mut next = Time::ZERO;
            let (mut next_s, mut samples) = (0.0, vec![]);
            while samples.len() < 400_000 {
                let due = egress.next_event().min(next);
                if due == next && egress.next_event() > next {
                    egress.offer(Parcel { number: 0, size: 1000, ecn: Ecn::NotEct, flow: 0 }, next, &mut Deaf);
                    // 1000 packets of capacity a second.
                    next_s += -maths::ln(gaps.open_unit()) / (1000.0 * x);
                    next = Time::from_secs_f64(next_s);
                } else if let Some(delivery) = egress.advance(due, &mut Deaf)
                    && due > Time::from_secs_f64(10.0)
                {
                    samples.push(if delivery.packet.flow == 0 { 1.0 } else { 0.0 });
                }
                fill(&mut egress, due);
            }
            let ((share, error), model) = (estimate(&samples), choke_share(x));
            eprintln!("{dialect} {x}: {share} +- {error} against {model}");
            assert!((share - model).abs() <= 4.0 * error, "{dialect} {x}: {share} +- {error} against {model}");
        }
    }
}

#[test]
fn sred_counts_flows_as_precisely_as_its_average_allows() {
    // Each packet is of flow i with probability w(i), independent of all before. The list comes to hold the flows in
    // these shares, whatever the odds of a replacement: P rests at the sum of their squares, 1/N for N alike.
    let alike = |flows: usize| vec![1.0 / flows as f64; flows];
    let skewed: Vec<f64> = [0.5, 0.25].into_iter().chain([0.01; 25]).collect();
    for weights in [alike(10), alike(100), alike(400), skewed] {
        let values = common::values("sred", &[], Rate::from_bps(1_000_000)).expect("the defaults are good");
        let site = Site { rate: Rate::from_bps(1_000_000), stream: Stream::named(1, "law") };
        let mut law = Sred::new(&values, site);
        let mut draws = Stream::named(1, "flows");
        let mut samples = vec![];
        for number in 0..5_000_000 {
            let mut draw = draws.unit();
            let flow = weights.iter().position(|weight| {
                draw -= weight;
                draw < 0.0
            });
            let flow = FlowKey(flow.unwrap_or(weights.len() - 1) as u64);
            let _ = law
                .on_arrival(&Arrival { size: 1000, ecn: Ecn::NotEct, flow, backlog: Backlog::default() }, Time::ZERO);
            // 0.25/1000 a packet: after 50,000 nothing is left of the beginning.
            if number > 50_000 {
                samples.push(law.gauges().control.expect("P"));
            }
        }
        let expected: f64 = weights.iter().map(|weight| weight * weight).sum();
        let (mean, error) = estimate(&samples);
        eprintln!("{} flows: {mean} +- {error} against {expected}", weights.len());
        assert!(4.0 * error <= 0.08 * expected, "{} flows: {mean} +- {error} is precise", weights.len());
        assert!((mean - expected).abs() <= 4.0 * error, "{} flows: {mean} +- {error}", weights.len());
        // With flows alike each packet hits with 1/N whatever the list: P averages independent draws, and strays by
        // sqrt(a / (2 - a) (1 - 1/N) / N). Squares of it forget within some 2000 packets: 2500 independent ones are
        // known within 1/35, and their root within half of that; four such.
        if weights[0] == weights[1] {
            let n = weights.len() as f64;
            let a = 0.25 / 1000.0;
            let strays = (a / (2.0 - a) * (1.0 - 1.0 / n) / n).sqrt();
            let variance = samples.iter().map(|p| (p - expected) * (p - expected)).sum::<f64>() / samples.len() as f64;
            let ratio = variance.sqrt() / strays;
            eprintln!("strays {ratio} of {strays}, {} of the mean", strays / expected);
            assert!((ratio - 1.0).abs() < 0.06, "{n} flows: {ratio} times {strays}");
        }
    }
}
