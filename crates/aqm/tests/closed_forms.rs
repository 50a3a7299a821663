//! Laws that can be solved on paper, against the solution: when CoDel drops, what PIE's table and PI2's square make of
//! a probability, how DualPI2 couples its queues, how GSP's interval shrinks.

use crate::common::{self, Deaf, Parcel, built};
use aqm::law::pi2::Pi2;
use aqm::law::pie::Pie;
use aqm::param::Values;
use aqm::{Arrival, Backlog, Cause, Departure, Egress, Headers, Law, Qdisc, Tap, Verdict};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time, maths};

/// A link that sends a packet of 1000 bytes in 0.1 ms.
const RATE: Rate = Rate::from_bps(80_000_000);
const SIZE: u32 = 1000;
const SERVICE: Span = Span::from_us(100);

fn values(name: &str, written: &[(&str, &str)]) -> Values {
    let written: Vec<_> = written.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect();
    common::values(name, &written, RATE).expect("the values are good")
}

/// When packets were lost, in seconds.
#[derive(Default)]
struct Losses(Vec<f64>);

impl<P> Tap<P> for Losses {
    fn dropped(&mut self, _packet: P, _cause: Cause, now: Time) {
        self.0.push(now.since(Time::ZERO).secs_f64());
    }
    fn marked(&mut self, _packet: &P, _cause: Cause, _now: Time) {}
}

impl<P> Headers<P> for Losses {}

/// Losses of one flow that sends a packet each `gap` for `seconds`, and when a packet first left that had waited
/// `target`.
fn overload(name: &str, written: &[(&str, &str)], gap: Span, target: Span, seconds: u64) -> (Vec<f64>, f64) {
    let mut egress = Egress::new(RATE, built::<Parcel>(name, written, RATE, Stream::named(1, "q")));
    let mut losses = Losses::default();
    let mut reached = None;
    let end = Time::ZERO + Span::from_secs(seconds);
    let mut now = Time::ZERO;
    let mut number = 0;
    while now < end {
        now += gap;
        number += 1;
        while egress.next_event() <= now {
            let due = egress.next_event();
            if let Some(delivery) = egress.advance(due, &mut losses)
                && delivery.waited >= target
            {
                // It was taken when its transmission began.
                let taken = delivery.at.since(Time::ZERO).secs_f64() - SERVICE.secs_f64();
                reached.get_or_insert(taken);
            }
        }
        egress.offer(Parcel { number, size: SIZE, ecn: Ecn::NotEct, flow: 0 }, now, &mut losses);
    }
    egress.assert_conserved();
    (losses.0, reached.expect("the queue reaches its target"))
}

#[test]
fn codel_drops_ever_faster_by_the_root_of_their_number() {
    // RFC 8289 §5: the first drop an interval after the target was reached, the one after number k an interval over
    // sqrt(k) later. Of such a sum Euler and Maclaurin have the closed form
    //     1 + 1/sqrt(2) + ... + 1/sqrt(n) = 2 sqrt(n) + zeta(1/2) + 1/(2 sqrt(n)) - 1/(24 sqrt(n)^3) + ...,
    // whose next term is below 1/(300 sqrt(n)^7).
    const ZETA: f64 = -1.460_354_508_809_586_8;
    let interval_s = 0.1;
    for (name, written) in
        [("codel", vec![("limit", "1000000p")]), ("fq_codel", vec![("limit", "1000000p"), ("quantum", "1000b")])]
    {
        // A quarter more than the link carries, 2500 packets a second, are dropped when sqrt(n) = 250: until then the
        // queue never ends.
        let (losses, reached_s) = overload(name, &written, Span::from_us(80), Span::from_ms(5), 40);
        assert!(losses.len() > 30_000, "{name}: {} drops", losses.len());
        // A drop waits for the link to ask for a packet.
        let late = |at_s: f64, due_s: f64| (-1e-9..SERVICE.secs_f64() + 1e-9).contains(&(at_s - due_s));
        assert!(late(losses[0], reached_s + interval_s), "{name}: the first at {} after {reached_s}", losses[0]);
        for (number, at_s) in losses.iter().enumerate().skip(1) {
            let n = number as f64;
            let root = n.sqrt();
            let sum = 2.0 * root + ZETA + 0.5 / root - 1.0 / (24.0 * root * n);
            let (due_s, tolerance_s) = (losses[0] + interval_s * sum, interval_s / (300.0 * maths::powi(root, 7)));
            // Each of the steps may be a nanosecond shorter.
            let due_s = due_s - tolerance_s - 1e-9 * n;
            let slack_s = SERVICE.secs_f64() + 2.0 * tolerance_s + 1e-9 * n + 1e-9;
            assert!((0.0..=slack_s).contains(&(at_s - due_s)), "{name}: drop {} at {at_s}, due at {due_s}", number + 1);
            if at_s - losses[0] > 20.0 {
                break;
            }
        }
    }
}

/// PIE as it sees waits of `delay_s` at its next tick.
fn tick(law: &mut impl Law, delay_s: f64) {
    let at = law.next_tick();
    let enqueued = Time::ZERO + at.since(Time::ZERO).saturating_sub(Span::from_secs_f64(delay_s));
    let backlog = Backlog { packets: 10, bytes: 10_000 };
    let departure = Departure { size: SIZE, ecn: Ecn::NotEct, dscp: 0, flow: FlowKey(0), enqueued, backlog };
    let _ = law.on_departure(&departure, at);
    law.tick(backlog, at);
}

#[test]
fn pie_takes_steps_that_go_with_the_root_of_the_probability() {
    // De Schepper et al. 2016, §3: what PIE's table does to its gains is near sqrt(2 p), for which the loop's gain does
    // not depend on p. Its decades of p come with factors of 4, where the root has sqrt(10): over five of them the
    // table drifts from 0.44 times the root, where the lowest ends, to 3.54 times it, where the highest begins.
    let (target_s, alpha, beta) = (0.015, 0.125, 1.25);
    let mut pie = Pie::new(&values("pie", &[]), Stream::named(1, "law"));
    let mut draws = Stream::named(1, "delays");
    let (mut delay_s, mut p) = (0.0, 0.0);
    let mut decades = [(f64::INFINITY, 0.0_f64); 5];
    for number in 0..200_000 {
        // A millisecond above the target in the mean, then one below it, for as long as p needs through all its range.
        let (low, high) = if number / 3000 % 2 == 0 { (0.0159, 0.0161) } else { (0.0139, 0.0141) };
        let next_s = (low + (high - low) * draws.unit()) * 1e9;
        // Nanoseconds are all that a waiting time has.
        let next_s = next_s.round() * 1e-9;
        tick(&mut pie, next_s);
        let after = pie.gauges().probability.expect("PIE has a probability");
        let untuned = alpha * (next_s - target_s) + beta * (next_s - delay_s);
        // Where neither bound nor cap comes in, and the step is far above what is rounded; after the first ticks,
        // before which nothing can have waited so long.
        if number > 10 && (1e-6..0.1).contains(&p) && after > 0.0 && untuned.abs() > 1e-4 {
            let tuned = (after - p) / untuned;
            let ratio = tuned / (2.0 * p).sqrt();
            let decade = ((maths::ln(p) - maths::ln(1e-6)) / maths::ln(10.0)) as usize;
            let (least, most) = &mut decades[decade];
            (*least, *most) = (least.min(ratio), most.max(ratio));
        }
        (delay_s, p) = (next_s, after);
    }
    for (decade, (least, most)) in decades.iter().enumerate() {
        // RFC 8033 §4.2: 1/512 in the first of these decades, then four times as much in each.
        let begins = maths::powi(4.0, decade as u64) / 512.0 / (2.0 * maths::powi(10.0, decade as u64) * 1e-6).sqrt();
        let ends = begins / 10_f64.sqrt();
        assert!(*least >= ends * (1.0 - 1e-6) && *most <= begins * (1.0 + 1e-6), "{decade}: {least} to {most}");
        // And all of the decade was seen.
        assert!(*least < 1.1 * ends && *most > begins / 1.1, "{decade}: only {least} to {most} of {ends} to {begins}");
        assert!(*least > 0.43 && *most < 3.54, "{decade}: {least} to {most}");
    }
}

/// Brings PI2 to a p' of about `wanted` and leaves it there.
fn settled_pi2(wanted: f64) -> Pi2 {
    let mut law = Pi2::new(&values("pi2", &[("ecn", "true")]), Stream::named(1, "law"));
    // From 0 to a wait d the controller goes alpha (d - target) + beta d, and back at the target beta (target - d).
    tick(&mut law, 0.020);
    while law.gauges().control.expect("p'") < wanted {
        // Each turn through 30 ms adds alpha * 10 ms = 0.003.
        tick(&mut law, 0.030);
        tick(&mut law, 0.020);
    }
    law
}

#[test]
fn pi2_squares_for_classic_flows_and_doubles_for_scalable_ones() {
    for wanted in [0.06, 0.1, 0.2, 0.4, 0.49] {
        let mut law = settled_pi2(wanted);
        let linear = law.gauges().control.expect("p'");
        assert!((linear - wanted).abs() < 0.01, "{linear} for {wanted}");
        let draws = 400_000_u32;
        for (ecn, expected, marks) in
            [(Ecn::NotEct, linear * linear, false), (Ecn::Ect0, linear * linear, true), (Ecn::Ect1, 2.0 * linear, true)]
        {
            let backlog = Backlog { packets: 10, bytes: 10_000 };
            let arrival = Arrival { size: SIZE, ecn, flow: FlowKey(0), backlog };
            let mut signals = 0;
            for _ in 0..draws {
                let verdict = law.on_arrival(&arrival, Time::ZERO);
                assert!(verdict == Verdict::Pass || matches!(verdict, Verdict::Mark(_)) == marks, "{verdict:?}");
                signals += u32::from(verdict != Verdict::Pass);
            }
            // Binomial, 4.5 standard deviations.
            let bound = 4.5 * (f64::from(draws) * expected * (1.0 - expected)).sqrt();
            assert!((f64::from(signals) - f64::from(draws) * expected).abs() < bound, "{ecn:?} at {linear}: {signals}");
        }
    }
}

/// Packets of each kind, and how many of them were signalled.
#[derive(Default)]
struct Signals {
    marked: u64,
    dropped: u64,
}

impl Tap<Parcel> for Signals {
    fn dropped(&mut self, packet: Parcel, _cause: Cause, _now: Time) {
        assert_eq!(packet.ecn, Ecn::NotEct, "there is no overload");
        self.dropped += 1;
    }
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {
        self.marked += 1;
    }
}

impl Headers<Parcel> for Signals {}

#[test]
fn dualpi2_marks_k_times_the_root_of_what_it_drops() {
    // RFC 9332 §2.1: p_C = (p_CL / k)^2. Both queues are fed and served so that every packet waits exactly the target,
    // where p' stays as it is; the L-queue's own marks are out of the way.
    let native = [("min_th", "1s"), ("step_thresh", "1s")];
    for dialect in ["rfc", "linux"] {
        for (k, wait_ms) in [(2.0, 20), (2.0, 60), (4.0, 30), (1.0, 100)] {
            let k_text = format!("{k}");
            let written = [&native[..], &[("dialect", dialect), ("coupling_factor", &k_text)]].concat();
            let mut qdisc = built::<Parcel>("dualpi2", &written, RATE, Stream::named(1, "q"));
            let mut tap = Signals::default();
            let target = Span::from_ms(15);
            let parcel = |number: u64| {
                let is_scalable = number % 2 == 1;
                let ecn = if is_scalable { Ecn::Ect1 } else { Ecn::NotEct };
                Parcel { number, size: SIZE, ecn, flow: u64::from(is_scalable) }
            };
            // Heads that waited more raise p', and the same heads waiting the target again leave part of it.
            let mut due = qdisc.next_tick();
            let enqueued = due - target;
            for number in 0..1000 {
                qdisc.offer(parcel(number), enqueued, &mut Deaf);
            }
            qdisc.tick(due);
            let long = Span::from_ms(wait_ms);
            let take = |qdisc: &mut Box<dyn Qdisc<Parcel> + Send>, now: Time, tap: &mut dyn Tap<Parcel>| {
                while qdisc.take(now, tap).packet().is_some() {}
            };
            take(&mut qdisc, due, &mut Deaf);
            for wait in [long, target] {
                due = qdisc.next_tick();
                (0..2).for_each(|number| qdisc.offer(parcel(number), due - wait, &mut Deaf));
                qdisc.tick(due);
                take(&mut qdisc, due, &mut Deaf);
            }
            let linear = qdisc.gauges().control.expect("p'");
            assert!(linear > 0.0 && k * linear < 1.0, "{linear}");
            // Whole rounds of packets that wait the target, each of which a tick sees at that age.
            let rounds = 400;
            for _ in 0..rounds {
                due = qdisc.next_tick();
                for number in 0..1000 {
                    qdisc.offer(parcel(number), due - target, &mut Deaf);
                }
                qdisc.tick(due);
                assert!((qdisc.gauges().control.expect("p'") - linear).abs() < 1e-12, "p' rests at the target");
                take(&mut qdisc, due, &mut tap);
            }
            let each = 500.0 * f64::from(rounds);
            for (signals, p) in [(tap.dropped, linear * linear), (tap.marked, k * linear)] {
                // Sums pass 1 as often as they say, give or take the one that is not full; draws are binomial, and in
                // Linux the last packet of a round finds too little waiting to act on.
                let bound = match dialect {
                    "rfc" => 1.0,
                    _ => 4.5 * (each * p * (1.0 - p)).sqrt() + 3.0 * f64::from(rounds) * p,
                };
                let off = signals as f64 - each * p;
                assert!(off.abs() <= bound, "{dialect} k = {k}: {signals} of {each} at {p}, {off} off");
            }
        }
    }
}

#[test]
fn gsp_signals_as_often_as_its_integral() {
    // While the queue stays above the threshold, accumulated time grows by alpha a second, the interval is
    // I / (1 + alpha t / tau), and signals come at that rate: after time t, (t + alpha t^2 / (2 tau)) / I of them.
    let (interval_s, alpha, tau_s) = (0.2, 2.0, 1.0);
    let gap = Span::from_us(10);
    let mut qdisc = built::<Parcel>("gsp", &[("limit", "100000000p")], RATE, Stream::named(1, "q"));
    let mut losses = Losses::default();
    let mut now = Time::ZERO;
    for number in 0..1_500_000 {
        now += gap;
        qdisc.offer(Parcel { number, size: SIZE, ecn: Ecn::NotEct, flow: 0 }, now, &mut losses);
    }
    // With the packet that follows the hundred and first the queue is above 100.
    let began_s = 101.0 * gap.secs_f64();
    let losses = losses.0;
    for (number, at_s) in losses.iter().enumerate() {
        let t = at_s - began_s;
        let rate = (1.0 + alpha * t / tau_s) / interval_s;
        let signals = (t + alpha * t * t / (2.0 * tau_s)) / interval_s;
        // Each interval is as long as it was at its start, though it should have shrunk meanwhile: half the logarithm
        // of the growth of the rate in all, and at most the first such shortfall more, as sums and integrals go. And
        // the signal waits for an arrival: at most a gap each.
        let lag = 0.5 * maths::ln(rate * interval_s);
        let least = signals * (1.0 - gap.secs_f64() * rate) - lag - alpha * interval_s / (2.0 * tau_s);
        let n = number as f64;
        assert!(
            (least..=signals + gap.secs_f64() * rate).contains(&n),
            "{n} signals after {t} s, {signals} by the integral"
        );
    }
    assert!(losses.len() > 1000, "{}", losses.len());
}
