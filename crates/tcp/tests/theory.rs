//! TCP against theory: the window against the loss rate, and the timeout against RFC 6298 in floating point.

use crate::common::{Bench, CLIENT, DELAY, Fate, Kind, SERVER, at_ms, delayed, plain};
use base::{Span, Stream, Time};
use tcp::{Config, Control, Reduction, Repair};

/// Round trips on the bench: no queue, so a constant.
const RTT: f64 = 0.1;

/// Mean window of a flow whose losses `lost` decides, in segments: what was acknowledged in a round trip, over as many
/// packets as hold `events` losses. Only first transmissions are lost: the formulas know no timeouts.
fn mean_window(config: &Config, loss_ratio: f64, events: f64, mut lost: impl FnMut() -> bool + 'static) -> f64 {
    let config = Config { repair: Repair::Sack, limited_transmit: true, ..config.clone() };
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.write(CLIENT, u64::MAX / 2);
    bench.script(move |packet| if packet.kind == Kind::Data && lost() { Fate::Lose } else { Fate::Pass });
    // The start is forgotten after some hundred round trips, a few periods of the slowest sawtooth here.
    bench.run_to(50_000);
    let (from, before) = (bench.now, bench.ends[CLIENT].acknowledged());
    let enough = (events / loss_ratio) as u64 * u64::from(config.mss);
    while bench.ends[CLIENT].acknowledged() - before < enough {
        assert!(bench.step(Time::NEVER), "the flow goes on");
    }
    let segments = (bench.ends[CLIENT].acknowledged() - before) as f64 / f64::from(config.mss);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0, "every loss was repaired without the timer");
    segments * RTT / bench.now.since(from).secs_f64()
}

/// Mean window times sqrt(p) for independent losses and one acknowledgement a segment.
///
/// Between two losses W grows by 1/W a packet, so W^2 grows by 2 a packet, and a loss divides it by four. The number of
/// packets is exponential with mean 1/p, so p W^2 just after a loss is 2 S with S = sum over k >= 1 of X_k / 4^k, X_k
/// exponential with mean one. On average W falls by what it grew, which takes that many round trips, so that
/// 1/p packets take E[W after a loss] = sqrt(2/p) E[sqrt S] round trips: the mean window is 1/(sqrt(2p) E[sqrt S]).
/// E[sqrt S] follows from the density of S, a sum of exponentials. Ott, Kemperman and Mathis, "The stationary behavior
/// of ideal TCP congestion avoidance" (1996), give 1.3098; Mathis et al., CCR 27(3) 1997, table 1, have 1.31.
fn constant_of_independent_losses() -> f64 {
    let terms = 25;
    let mean = |k: i32| 0.25_f64.powi(k);
    let half_gamma = std::f64::consts::PI.sqrt() / 2.0;
    let root: f64 = (1..=terms)
        .map(|k| {
            let weight: f64 = (1..=terms).filter(|&j| j != k).map(|j| mean(k) / (mean(k) - mean(j))).product();
            weight * mean(k).sqrt() * half_gamma
        })
        .sum();
    1.0 / (2.0_f64.sqrt() * root)
}

#[test]
fn the_constant_of_independent_losses() {
    assert!((constant_of_independent_losses() - 1.3098).abs() < 5e-5, "{}", constant_of_independent_losses());
}

/// The sawtooth in whole segments, one tooth at a time, for the flow of [`mean_window`]: what the fluid leaves out, in
/// the order of a segment each. With `a` the window after a reduction and `e` before the next:
/// - the flight is whole segments and whole acknowledgements (the odd segment's waits for the next round): w - b/2 on
///   average;
/// - a round trip adds (1 - b/(2w) - 1/(2bw)) / b: one acknowledgement for `b` of the flight, and the window grows
///   while they come. So w^2 grows by (2/b) (1 - 1/(2bw)) a packet, and growth takes b (e - a) + (b^2 + 1)/2 ln(e/a)
///   round trips;
/// - one more round trip goes by without growth: recovery, or the echo until CWR arrives. It sends `a` packets, less
///   what the whole segments and the retransmission take.
struct Teeth {
    /// Segments for an acknowledgement.
    b: f64,
    /// What a reduction leaves of `e`.
    halved: fn(f64) -> f64,
    /// By how many packets the round trip without growth falls short of `a`.
    short: f64,
    /// Whether losses in the flight during which the first is found go unnoticed: the `e` packets sent in that time.
    hides: bool,
}

impl Teeth {
    /// Recovery halves the flight.
    fn of_losses(b: f64, hides: bool) -> Self {
        Self { b, halved: |e| (e - 0.5) / 2.0, short: 1.5, hides }
    }

    /// Mean window over many teeth; `gap` draws the packets from a loss that counts to the next.
    fn mean_window(&self, mut gap: impl FnMut() -> f64) -> f64 {
        let (mut a, mut packets, mut round_trips) = (10.0_f64, 0.0, 0.0);
        let k = 1.0 / self.b;
        for tooth in 0..200_000 {
            let gap = gap();
            // (e^2 + k e) - (a^2 + k a) = 2 k growth, growth = gap - a + short, and e more if they are hidden.
            let known = a * a - k * a + 2.0 * k * (gap + self.short) + k * k / 4.0;
            let e = known.max(0.0).sqrt() + if self.hides { k / 2.0 } else { -k / 2.0 };
            let e = e.max(a);
            if tooth >= 100 {
                packets += gap + if self.hides { e } else { 0.0 };
                round_trips += self.b * (e - a) + (self.b * self.b + 1.0) / 2.0 * base::maths::ln(e / a) + 1.0;
            }
            a = (self.halved)(e).max(2.0);
        }
        packets / round_trips
    }
}

/// What the fluid may be above the packets, in segments: the teeth's own difference from it is 2.1 for periodic losses
/// (1.5 a0 with a0 = sqrt(2/(3p)) against (1/p) / (a0 + 1.41), to first order) and less in all other cases.
const DISCRETE: f64 = 2.2;

#[test]
fn independent_losses_give_one_over_root_p() {
    for (config, b) in [(plain(), 1.0), (delayed(), 2.0_f64)] {
        for p in [0.0005, 0.001, 0.003, 0.01] {
            let mut losses = Stream::named(1, "losses");
            let window = mean_window(&config, p, 2_000.0, move || losses.chance(p));
            let mut gaps = Stream::named(2, "gaps");
            let teeth = Teeth::of_losses(b, true).mean_window(|| -base::maths::ln(gaps.open_unit()) / p);
            let fluid = constant_of_independent_losses() / (b * p).sqrt();
            // The packets of a tooth have a standard deviation as large as their mean, and the window goes with the
            // root of them: half of 1/sqrt(2000) is 1.1 %; three of them. What is left to the teeth is of second
            // order: a fraction of a segment.
            let chance = 0.034 * fluid;
            assert!((window - teeth).abs() < chance + 0.3, "b = {b}, p = {p}: {window:.2}, in teeth {teeth:.2}");
            assert!(window < fluid + chance && window > fluid - DISCRETE - chance, "b = {b}, p = {p}: {window:.2}");
        }
    }
}

#[test]
fn periodic_losses_give_the_sawtooth() {
    // Mathis et al. 1997 (3): W/2 to W and back, mean sqrt(3 / (2 b p)).
    for (config, b) in [(plain(), 1.0), (delayed(), 2.0_f64)] {
        for period in [10_000_u64, 2_000, 1_000, 333, 100] {
            let p = 1.0 / period as f64;
            let mut count = 0;
            let window = mean_window(&config, p, 100.0, move || {
                count += 1;
                count % period == 0
            });
            let teeth = Teeth::of_losses(b, false).mean_window(|| period as f64);
            let fluid = (1.5 / (b * p)).sqrt();
            // The peak is a whole number of segments, the same in every tooth or in turns: half a segment of it.
            assert!((window - teeth).abs() < 0.5, "b = {b}, one in {period}: {window:.2}, in teeth {teeth:.2}");
            assert!((fluid - DISCRETE..fluid).contains(&window), "b = {b}, one in {period}: {window:.2}");
        }
    }
}

#[test]
fn marks_do_what_losses_do() {
    // RFC 3168 §5: the response to a mark is the response to a loss. The window itself is halved, and nothing is sent
    // again.
    let p = 0.003;
    let config = Config { ecn: tcp::EcnMode::On, repair: Repair::Sack, ..plain() };
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.write(CLIENT, u64::MAX / 2);
    let mut marks = Stream::named(1, "losses");
    bench.script(move |packet| if packet.kind == Kind::Data && marks.chance(p) { Fate::Mark } else { Fate::Pass });
    bench.run_to(50_000);
    let before = bench.ends[CLIENT].acknowledged();
    bench.run_to(4_050_000);
    let window = (bench.ends[CLIENT].acknowledged() - before) as f64 / 1000.0 * RTT / 4000.0;
    let mut gaps = Stream::named(2, "gaps");
    let teeth = Teeth { b: 1.0, halved: |e| e / 2.0, short: 0.5, hides: true }
        .mean_window(|| -base::maths::ln(gaps.open_unit()) / p);
    let fluid = constant_of_independent_losses() / p.sqrt();
    // Some 2500 marks that count in 40000 round trips.
    assert!((window - teeth).abs() < 0.03 * fluid + 0.3, "{window:.2}, in teeth {teeth:.2}");
    assert_eq!(bench.ends[CLIENT].stats().retransmitted, 0);
}

fn dctcp() -> Config {
    Config { ecn: tcp::EcnMode::On, repair: Repair::Sack, control: Control::Dctcp, ecn_floor: 2, ..plain() }
}

/// Mean window under independent marks, segments, over 15000 round trips.
fn dctcp_window(config: Config, p: f64) -> f64 {
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.write(CLIENT, u64::MAX / 2);
    let mut marks = Stream::named(1, "losses");
    bench.script(move |packet| if packet.kind == Kind::Data && marks.chance(p) { Fate::Mark } else { Fate::Pass });
    bench.run_to(50_000);
    let before = bench.ends[CLIENT].acknowledged();
    bench.run_to(1_550_000);
    (bench.ends[CLIENT].acknowledged() - before) as f64 / f64::from(config.mss) * RTT / 1500.0
}

#[test]
fn dctcp_gives_one_over_p() {
    // RFC 8257 under independent marks: alpha is p, a reduction takes p W / 2, and the next comes 1/p packets after the
    // window of W + 1 that does not count. Every acknowledgement without an echo adds 1/W: all the way,
    // p W^2 / 2 = (1 - p) (W + 1 + 1/p), for small p W = (1 + sqrt(3)) / p; or only once that window is through,
    // p W^2 / 2 = 1/p - 1, W = sqrt(2) / p. On average W is a quarter of alpha below its peak, and half a segment is no
    // whole one.
    for reduction in [Reduction::AtOnce, Reduction::Proportional] {
        for p in [0.1, 0.03, 0.01] {
            let window = dctcp_window(Config { reduction, ..dctcp() }, p);
            let peak = if reduction == Reduction::Proportional {
                (2.0 * (1.0 / p - 1.0) / p).sqrt()
            } else {
                let linear = 1.0 - p;
                (linear + (linear * linear + 2.0 * p * linear * (1.0 + 1.0 / p)).sqrt()) / p
            };
            let fluid = peak * (1.0 - p / 4.0) - 0.5;
            // Alpha's relative variance is g / (2 - g) / (p W), 1.2 and 2.3 %, and enters in second order; chance, over
            // 55 times W round trips at least, is of the same size. One more segment for the window of whole ones.
            assert!((window - fluid).abs() < 0.03 * fluid + 1.0, "{reduction:?}, p = {p}: {window:.2}, {fluid:.2}");
        }
    }
}

#[test]
fn dctcp_on_whole_segments_lies_between() {
    // Linux takes whole segments off, rounded down: nothing as long as alpha W / 2 is less than one. So the window
    // rises above the sqrt(2) / p at which reductions balance growth, to where one segment comes off, 2 / p; alpha's
    // spread makes that happen earlier now and then, never later on average.
    for p in [0.03, 0.01] {
        let window = dctcp_window(Config { whole_segments: true, reduction: Reduction::Proportional, ..dctcp() }, p);
        assert!((2.0_f64.sqrt() / p..2.0 / p).contains(&window), "p = {p}: {window:.2}");
    }
}

#[test]
fn cubic_gives_its_own_law_or_renos() {
    // RFC 9438 §5.1 (5): mean window (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4), 187 and 1054 segments in
    // its table 1 for one loss in 10^4 and 10^5; Reno's 38 and 12 for one in 10^3 and 10^2, where CUBIC's own are
    // below.
    let config = Config { control: Control::Cubic, byte_counting: true, ..plain() };
    for period in [100_u64, 1_000, 10_000, 100_000] {
        let p = 1.0 / period as f64;
        let mut count = 0;
        let window = mean_window(&config, p, 20.0, move || {
            count += 1;
            count % period == 0
        });
        let own = base::maths::pow(0.4 * 3.7 / (4.0 * 0.3), 0.25) * base::maths::pow(RTT / p, 0.75);
        let reno = (1.5 / p).sqrt();
        // Fast convergence (§4.7), which the formula leaves out, lowers a plateau to 0.85 of the window at a loss
        // whenever that was below the last plateau: for single teeth or for every second, never for more.
        let range = if own > reno { 0.85 * own..own } else { reno - DISCRETE..reno };
        assert!(range.contains(&window), "one in {period}: {window:.1} segments, not in {range:?}");
    }
}

#[test]
fn the_timeout_is_rfc_6298s() {
    // One segment at a time over a path of random delay; the estimator in floating point beside it.
    let config = Config { rto_min: Span::ZERO, idle_restart: false, ..plain() };
    let mut bench = Bench::new(&config);
    let mut delays = Stream::named(3, "delays");
    let mut late = vec![];
    for k in 0..300 {
        let by = Span::from_us(delays.below(400_000));
        late.push(by);
        bench.write_at(10_000 * k as u64, CLIENT, 1_000).delay(CLIENT, Kind::Data, &[k + 1], by);
    }
    let (mut srtt, mut variation, mut rto) = (0.0, 0.0, 1.0_f64);
    for (k, by) in late.iter().enumerate() {
        let sent = at_ms(10_000 * k as u64);
        while bench.now < sent || bench.packets(CLIENT, Kind::Data).count() <= k {
            assert!(bench.step(Time::NEVER));
        }
        // The timer runs from the sending on; a round trip longer than it would be a timeout, and no sample.
        let measured = bench.ends[CLIENT].next_wake().since(sent).secs_f64();
        // The estimator holds eighths of a nanosecond of the mean and quarters of the deviation: 8 + 4 x 4 ns at most
        // are lost to rounding before they decay.
        assert!((measured - rto).abs() < 100e-9, "segment {k}: {measured} against {rto}");
        bench.run_to(10_000 * k as u64 + 9_000);
        let rtt = (DELAY + DELAY + *by).secs_f64();
        if rtt >= rto {
            // Sent again; nothing was learnt, and the acknowledgement ended the back-off.
            continue;
        }
        if k == 0 {
            (srtt, variation) = (rtt, rtt / 2.0);
        } else {
            variation = 0.75 * variation + 0.25 * (srtt - rtt).abs();
            srtt = 0.875 * srtt + 0.125 * rtt;
        }
        rto = srtt + 4.0 * variation;
    }
    assert_eq!(bench.ends[SERVER].received(), 300_000);
}
