//! What theory says a queue, or a law, must do.
//!
//! Means of simulated queues are compared within four standard errors, estimated from fifty batch means (Student's t
//! with 49 degrees of freedom is beyond 4 with probability 2e-4); batches are long against the queue's correlation.
//! Seeds are fixed, so nothing here fails by chance twice. Each test also states how small the error must be, so that
//! four of them mean something.

use crate::common::{self, Deaf, Parcel, built};
use aqm::law::pi::Pi;
use aqm::law::red::Red;
use aqm::registry::Site;
use aqm::{Arrival, Backlog, Egress, Law, Qdisc, Verdict};
use base::{Ecn, FlowKey, Rate, Stream, Time, maths};

const BATCHES: usize = 50;

/// A mean with its standard error.
#[derive(Debug)]
struct Estimate {
    mean: f64,
    error: f64,
}

impl Estimate {
    /// From equal batches of consecutive samples.
    fn of(samples: &[f64]) -> Self {
        let batches: Vec<f64> = samples
            .chunks_exact(samples.len() / BATCHES)
            .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
            .collect();
        let n = batches.len() as f64;
        let mean = batches.iter().sum::<f64>() / n;
        let variance = batches.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        Self { mean, error: (variance / n).sqrt() }
    }

    /// Asserts that `expected` is within four standard errors, and those within `precision` of it.
    fn agrees_with(&self, what: &str, expected: f64, precision: f64) {
        assert!(4.0 * self.error <= precision * expected, "{what}: {self:?} is as precise as {precision}");
        assert!((self.mean - expected).abs() <= 4.0 * self.error, "{what}: {self:?} against {expected}");
    }
}

/// What Poisson arrivals at a link saw. They see time averages (Wolff 1982).
struct Seen {
    /// Waiting time of each delivered packet in seconds.
    waits: Vec<f64>,
    /// Packets waiting at each arrival.
    queues: Vec<f64>,
    /// 1 for each arrival that was lost, 0 for others.
    losses: Vec<f64>,
    /// The law's control variable at each arrival.
    controls: Vec<f64>,
}

/// Sends `count` packets, after as many as `warmup`, of sizes from `size` at `load` times the link's rate.
fn poisson(
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    rate: Rate,
    load: f64,
    mean_size: f64,
    mut size: impl FnMut(&mut Stream) -> u32,
    warmup: usize,
    count: usize,
) -> Seen {
    let (mut gaps, mut sizes) = (Stream::named(1, "gaps"), Stream::named(1, "sizes"));
    let mean_gap_s = mean_size * 8.0 / rate.bps_f64() / load;
    let mut egress = Egress::new(rate, qdisc);
    let mut seen = Seen { waits: vec![], queues: vec![], losses: vec![], controls: vec![] };
    let mut now_s = 0.0;
    for number in 0..warmup + count {
        now_s += -mean_gap_s * maths::ln(gaps.open_unit());
        let now = Time::from_secs_f64(now_s);
        let is_measured = number >= warmup;
        while egress.next_event() <= now {
            if let Some(delivery) = egress.advance(now, &mut Deaf)
                && is_measured
            {
                seen.waits.push(delivery.waited.secs_f64());
            }
        }
        let lost = egress.counts().dropped_total();
        if is_measured {
            seen.queues.push(f64::from(egress.backlog().packets));
            seen.controls.push(egress.gauges().control.unwrap_or(0.0));
        }
        egress.offer(
            Parcel { number: number as u64, size: size(&mut sizes), ecn: Ecn::NotEct, flow: 0 },
            now,
            &mut Deaf,
        );
        if is_measured {
            seen.losses.push((egress.counts().dropped_total() - lost) as f64);
        }
    }
    egress.assert_conserved();
    seen
}

const RATE: Rate = Rate::from_bps(100_000_000);

#[test]
fn fixed_sizes_wait_as_in_m_d_1() {
    let service_s = 1000.0 * 8.0 / RATE.bps_f64();
    for (load, precision) in [(0.5, 0.02), (0.8, 0.04), (0.9, 0.08)] {
        let qdisc = built("pfifo", &[("limit", "1000000p")], RATE, Stream::named(1, "q"));
        let seen = poisson(qdisc, RATE, load, 1000.0, |_| 1000, 50_000, 2_000_000);
        // Pollaczek and Khinchine: rho / (2 (1 - rho)) service times.
        let expected = load / (2.0 * (1.0 - load)) * service_s;
        Estimate::of(&seen.waits).agrees_with(&format!("M/D/1 at {load}"), expected, precision);
    }
}

#[test]
fn exponential_sizes_wait_as_in_m_m_1() {
    // Sizes of 1e6 bytes in the mean, so that rounding to a byte does not show, on a link as much faster.
    let rate = Rate::from_bps(100_000_000_000);
    let service_s = 1e6 * 8.0 / rate.bps_f64();
    for (load, precision) in [(0.5, 0.03), (0.8, 0.06), (0.9, 0.15)] {
        let qdisc = built("pfifo", &[("limit", "1000000p")], rate, Stream::named(1, "q"));
        let draw = |sizes: &mut Stream| (-1e6 * maths::ln(sizes.open_unit())).ceil() as u32;
        let seen = poisson(qdisc, rate, load, 1e6, draw, 50_000, 2_000_000);
        let expected = load / (1.0 - load) * service_s;
        Estimate::of(&seen.waits).agrees_with(&format!("M/M/1 at {load}"), expected, precision);
    }
}

#[test]
fn a_limited_queue_loses_as_in_m_m_1_k() {
    // K = 5 in the system: 4 wait and 1 is in transmission. Loss (1 - rho) rho^K / (1 - rho^(K+1)).
    let rate = Rate::from_bps(100_000_000_000);
    for load in [0.8, 1.25_f64] {
        let qdisc = built("pfifo", &[("limit", "4p")], rate, Stream::named(1, "q"));
        let draw = |sizes: &mut Stream| (-1e6 * maths::ln(sizes.open_unit())).ceil() as u32;
        let seen = poisson(qdisc, rate, load, 1e6, draw, 10_000, 1_000_000);
        let expected = (1.0 - load) * maths::powi(load, 5) / (1.0 - maths::powi(load, 6));
        Estimate::of(&seen.losses).agrees_with(&format!("M/M/1/5 at {load}"), expected, 0.03);
    }
}

#[test]
fn pi_has_no_error_at_rest() {
    // Load 1.25 that does not respond: whatever its gains, an integrating controller comes to rest only with the mean
    // queue at its reference and a fifth of the packets signalled. Gains a thousand times the published ones, as a loop
    // without a round trip allows, make the rest come soon.
    let gains = [("qref", "50p"), ("a", "0.002"), ("b", "0.0018"), ("mean_packet", "1000b")];
    let seen =
        poisson(built("pi", &gains, RATE, Stream::named(1, "q")), RATE, 1.25, 1000.0, |_| 1000, 200_000, 2_000_000);
    Estimate::of(&seen.queues).agrees_with("queue", 50.0, 0.02);
    Estimate::of(&seen.losses).agrees_with("losses", 0.2, 0.015);
}

#[test]
fn rem_rests_where_queue_and_rate_balance() {
    // The price only stays where it is if alpha (q - target) + x - c is 0 in the mean. At load 1.04, 25 packets of
    // capacity in 2 ms: q = 40 - 1 / 0.1 = 30. That holds through the swings of a load that does not respond, and damps
    // nothing, as long as they do not push the price to its bound at 0.
    let given = [("target", "40p"), ("mean_packet", "1000b")];
    let seen =
        poisson(built("rem", &given, RATE, Stream::named(1, "q")), RATE, 1.04, 1000.0, |_| 1000, 500_000, 4_000_000);
    Estimate::of(&seen.queues).agrees_with("queue", 30.0, 0.2);
    assert!(seen.controls.iter().all(|price| *price > 0.0), "the price is never at its bound");
}

#[test]
fn ared_brings_its_average_to_the_target() {
    // Load 1.1: 1 in 11 must be lost. RED with probability 0.02, which signals at most 1 in 25 below max, cannot rest
    // below it; adaptation can, anywhere in the target, the middle fifth of the band.
    let given = [("mean_packet", "1000b"), ("min", "30p"), ("max", "90p"), ("probability", "0.02")];
    let seen =
        poisson(built("ared", &given, RATE, Stream::named(1, "q")), RATE, 1.1, 1000.0, |_| 1000, 1_000_000, 2_000_000);
    let control = Estimate::of(&seen.controls);
    let slack = 4.0 * control.error;
    assert!(slack < 3.0, "{control:?} is precise against a target of 54 to 66");
    assert!((54.0 - slack..=66.0 + slack).contains(&control.mean), "{control:?}");
    // At least what does not fit is lost; at most 0.109 as long as the link is busy for 98 % of the time.
    let losses = Estimate::of(&seen.losses);
    assert!(losses.mean >= 0.1 / 1.1 - 4.0 * losses.error && losses.mean < 0.109, "{losses:?}");
}

/// A law from values, to be driven without a queue.
fn site(rate: Rate) -> Site {
    Site { rate, stream: Stream::named(7, "law") }
}

fn law_values(name: &str, written: &[(&str, &str)], rate: Rate) -> aqm::param::Values {
    let written: Vec<_> = written.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect();
    common::values(name, &written, rate).expect("the values are good")
}

/// Gaps between signals, in packets, of RED at a constant probability of 1/20.
fn red_gaps(written: (&str, &str), signals: usize) -> Vec<usize> {
    let mut given = vec![("wq", "1"), ("min", "5p"), ("max", "15p"), ("probability", "0.1")];
    given.push(written);
    let mut red = Red::new(&law_values("red", &given, RATE), site(RATE));
    let arrival =
        Arrival { size: 500, ecn: Ecn::NotEct, flow: FlowKey(0), backlog: Backlog { packets: 10, bytes: 5000 } };
    let mut gaps = vec![];
    let mut gap = 0;
    // The first gap begins at the edge of the band.
    while gaps.len() <= signals {
        gap += 1;
        if red.on_arrival(&arrival, Time::ZERO) != Verdict::Pass {
            gaps.push(gap);
            gap = 0;
        }
    }
    gaps.split_off(1)
}

#[test]
fn red_spaces_its_signals_evenly() {
    // Floyd and Jacobson 1993, §7, with the count of 1 at the first packet after a signal: uniform on 1 to 1/p - 1,
    // so that the mean is 1/(2p) and twice as many are signalled as p says. wait: 1/p to 2/p - 1. Linux: 1 to 1/p.
    let forms = [
        (("dialect", "paper"), 1, 19),
        (("wait", "true"), 20, 39),
        (("dialect", "ns2"), 20, 39),
        (("dialect", "linux"), 1, 20),
    ];
    for (written, low, high) in forms {
        let signals = 200_000;
        let mut histogram = vec![0_usize; high + 2];
        for gap in red_gaps(written, signals) {
            assert!((low..=high).contains(&gap), "{written:?}: a gap of {gap}");
            histogram[gap] += 1;
        }
        let share = 1.0 / (high - low + 1) as f64;
        // Binomial, 4.5 standard deviations: one in 150,000 for each of some 80 bins.
        let bound = 4.5 * (signals as f64 * share * (1.0 - share)).sqrt();
        for (gap, count) in histogram.iter().enumerate().take(high + 1).skip(low) {
            assert!((*count as f64 - signals as f64 * share).abs() < bound, "{written:?}: {count} gaps of {gap}");
        }
    }
}

#[test]
fn red_waits_half_a_packet_longer_for_the_first_signal() {
    // From the edge of the band the count begins at 0: uniform on 1 to 1/p, mean 1/(2p) + 1/2.
    let mut red = Red::new(&law_values("red", &[("wq", "1"), ("probability", "0.1")], RATE), site(RATE));
    let arrival = |packets| Arrival {
        size: 500,
        ecn: Ecn::NotEct,
        flow: FlowKey(0),
        backlog: Backlog { packets, bytes: 500 * u64::from(packets) },
    };
    let mut gaps = vec![];
    for _ in 0..100_000 {
        let _ = red.on_arrival(&arrival(0), Time::ZERO);
        let gap = (1..).find(|_| red.on_arrival(&arrival(10), Time::ZERO) != Verdict::Pass);
        gaps.push(gap.expect("a signal comes") as f64);
    }
    // Variance of a uniform on 1 to 20: (400 - 1)/12; four standard errors are 0.073.
    Estimate::of(&gaps).agrees_with("first gap", 10.5, 0.01);
}

#[test]
fn pi_answers_a_step_as_its_closed_form() {
    // A loop without delay: each period G(1 - p) packets arrive and c leave. With e = q - qref and u = p - p*,
    // e' = e - G u and u' = u + a e' - b e, so that e(k) = A s^k + B t^k with s, t the roots of
    // z^2 - (2 - aG) z + (1 - bG). Real ones here: 0.887 and 0.113.
    let (g, c, a, b) = (1000.0_f64, 800.0, 0.001, 0.0009);
    let (trace, determinant) = (2.0 - a * g, 1.0 - b * g);
    let root = (trace * trace - 4.0 * determinant).sqrt();
    let (s, t) = ((trace + root) / 2.0, (trace - root) / 2.0);
    // Bytes of one thousandth of a packet, so that the queue is nearly a real number.
    let given = [("qref", "500000b"), ("a", "0.001"), ("b", "0.0009"), ("mean_packet", "1000b"), ("w", "100hz")];
    let mut pi = Pi::new(&law_values("pi", &given, RATE), site(RATE));
    let mut tick = |queue: f64| {
        let bytes = (queue * 1000.0).round() as u64;
        pi.tick(Backlog { packets: 1, bytes }, pi.next_tick());
        pi.gauges().probability.expect("PI has a probability")
    };
    // The queue stands 200 above its reference after a first tick at it, p = b qref = 0.45.
    let p = tick(500.0);
    assert!((p - 0.45).abs() < 1e-12);
    let mut queue = 700.0;
    let mut p = tick(queue);
    let (e0, u0) = (200.0, p - (1.0 - c / g));
    let e1 = e0 - g * u0;
    let (big_a, big_b) = ((e1 - t * e0) / (s - t), (s * e0 - e1) / (s - t));
    for k in 1..60 {
        queue += g * (1.0 - p) - c;
        p = tick(queue);
        let expected = 500.0 + big_a * maths::powi(s, k) + big_b * maths::powi(t, k);
        // Half a byte of rounding a period, 0.0005 packets, moves p by a and b times that and so the queue by at most
        // G (a + b) 0.0005 = 0.001 a period; a sum of those that decays with s is below 0.001 / (1 - s) = 0.009.
        assert!((queue - expected).abs() < 0.009, "{k}: {queue} against {expected}");
    }
}
