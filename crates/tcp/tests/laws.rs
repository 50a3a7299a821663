//! Laws of single connections that hold whatever the recovery: the window against the loss rate for every controller
//! that losses drive, between the bounds of the literature; CUBIC's curve; DCTCP's estimate.

use crate::common::{self, Bench, CLIENT, Fate, Kind, plain};
use base::maths::{ln, pow};
use base::{Stream, Time};
use tcp::{Config, Control, CubicDialect, EcnMode, Reduction, Repair};

/// Round trips on the bench: no queue, so a constant.
const RTT: f64 = 0.1;

/// What a flow did under losses of its first transmissions.
struct Ran {
    /// What was acknowledged in a round trip on average, segments.
    window: f64,
    /// Reductions by recoveries and by timeouts.
    reductions: u64,
}

/// A long flow of which packet `k`, counted from 1 over first transmissions, is lost if `lost(k)`. It is watched for
/// `packets`, after a tenth of that.
fn run(config: &Config, packets: u64, mut lost: impl FnMut(u64) -> bool + 'static) -> Ran {
    let mut bench = Bench::new(config);
    bench.writes_down = false;
    bench.write(CLIENT, u64::MAX / 2);
    bench.script(
        move |packet| {
            if packet.kind == Kind::Data && lost(packet.number as u64) { Fate::Lose } else { Fate::Pass }
        },
    );
    let mss = u64::from(config.mss);
    let until = |bench: &mut Bench, segments: u64| {
        while bench.ends[CLIENT].acknowledged() < segments * mss {
            assert!(bench.step(Time::NEVER), "the flow goes on");
        }
    };
    until(&mut bench, packets / 10);
    let (from, before, stats) = (bench.now, bench.ends[CLIENT].acknowledged(), *bench.ends[CLIENT].stats());
    until(&mut bench, packets / 10 + packets);
    let segments = (bench.ends[CLIENT].acknowledged() - before) as f64 / mss as f64;
    let after = bench.ends[CLIENT].stats();
    Ran {
        window: segments * RTT / bench.now.since(from).secs_f64(),
        reductions: u64::from(after.timeouts + after.recoveries - stats.timeouts - stats.recoveries),
    }
}

/// CUBIC as RFC 9438 writes it, in fluid: a window that moves by formula, losses at given packets that are found a
/// round trip later, and a round trip of recovery without growth.
struct Fluid {
    /// Whether the estimate of Reno's window rises as fast as Reno's own once it is where the loss was (§4.3).
    catches_up: bool,
}

impl Fluid {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;

    /// Mean window in segments over `packets`, packet `k` lost if `lost(k)`.
    fn mean_window(&self, packets: u64, mut lost: impl FnMut(u64) -> bool) -> f64 {
        // Steps a round trip.
        const STEPS: f64 = 8.0;
        // §4.3: the additive increase that gives Reno's share with this decrease.
        let slow = 3.0 * (1.0 - Self::BETA) / (1.0 + Self::BETA);
        let (mut w, mut w_max, mut w_est, mut prior) = (30.0_f64, 30.0_f64, 30.0_f64, 30.0_f64);
        // Seconds since the epoch began, and K of §4.2.
        let (mut t, mut k) = (0.0_f64, 0.0_f64);
        let (mut sent, mut checked) = (0.0_f64, 0_u64);
        let (mut rounds, mut from_packets, mut from_rounds) = (0.0, 0.0, 0.0);
        // Steps until the first loss of a flight is known; others until then are the same congestion.
        let mut found_in: Option<u32> = None;
        loop {
            let step = w / STEPS;
            sent += step;
            rounds += 1.0 / STEPS;
            while (checked as f64) < sent {
                checked += 1;
                if lost(checked) && found_in.is_none() {
                    found_in = Some(STEPS as u32);
                }
            }
            if from_rounds == 0.0 && sent > packets as f64 / 10.0 {
                (from_packets, from_rounds) = (sent, rounds);
            }
            if sent > packets as f64 * 1.1 {
                return (sent - from_packets) / (rounds - from_rounds);
            }
            t += RTT / STEPS;
            let alpha = if self.catches_up && w_est >= prior { 1.0 } else { slow };
            w_est += alpha / STEPS;
            let delta = t - k;
            w = (Self::C * delta * delta * delta + w_max).max(w_est);
            match found_in {
                Some(0) => {
                    found_in = None;
                    prior = w;
                    // Fast convergence (§4.7).
                    w_max = if w < w_max { w * (1.0 + Self::BETA) / 2.0 } else { w };
                    w = (w * Self::BETA).max(2.0);
                    // Recovery sends at the new window for a round trip, in which nothing grows.
                    sent += w;
                    rounds += 1.0;
                    (w_est, t) = (w, 0.0);
                    let cube = (w_max - w).max(0.0) / Self::C;
                    k = if cube > 0.0 { pow(cube, 1.0 / 3.0) } else { 0.0 };
                }
                Some(ref mut steps) => *steps -= 1,
                None => {}
            }
        }
    }
}

/// Reno's window with the recovery of the name, nothing else.
fn of(repair: Repair) -> Config {
    Config { repair, ..plain() }
}

/// CUBIC as the RFC has it, and with what Linux has around it.
fn cubic(is_linux: bool) -> Config {
    let config = Config { control: Control::Cubic, byte_counting: true, limited_transmit: true, ..of(Repair::Sack) };
    if !is_linux {
        return config;
    }
    let cubic = CubicDialect::Linux;
    Config { cubic, whole_segments: true, reduction: Reduction::Proportional, repair: Repair::Rack, ..config }
}

/// What a flow is below the fluid for its whole segments, at most: half a segment of the flight on average, half a
/// segment of every reduction and of every peak, and a segment sent again in each tooth.
const DISCRETE: f64 = 2.2;

#[test]
fn every_recovery_of_reno_lies_between_pftk_and_mathis() {
    // Independent losses, one acknowledgement a segment, a timeout of at least a second. Above: congestion avoidance
    // that never waits for a timer, C / sqrt(p) with C = 1.3098 for independent losses (Ott, Kemperman and Mathis 1996;
    // Mathis et al. 1997). Below: Padhye, Firoiu, Towsley and Kurose 1998, (33), which takes all that follows a loss in
    // a flight for lost as well: more timeouts than independent losses cause.
    const EVENTS: f64 = 1_000.0;
    for p in [0.001, 0.003, 0.01, 0.03, 0.1_f64] {
        let mathis = 1.3098 / p.sqrt();
        let timers = (3.0 * (3.0 * p / 8.0_f64).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        let pftk = RTT / (RTT * (2.0 * p / 3.0_f64).sqrt() + 1.0 * timers);
        // The packets of a tooth spread as much as their mean, and the window goes with the root of them: three times
        // half of 1 / sqrt(1000).
        let chance = 1.5 / EVENTS.sqrt();
        let ran = [Repair::Reno, Repair::NewReno, Repair::Sack].map(|repair| {
            let mut losses = Stream::named(1, "losses");
            let ran = run(&of(repair), (EVENTS / p) as u64, move |_| losses.chance(p));
            let range = pftk * (1.0 - chance)..mathis * (1.0 + chance);
            assert!(range.contains(&ran.window), "{repair:?}, p = {p}: {:.2}, not in {range:.2?}", ran.window);
            ran
        });
        if p < 0.02 {
            // Below that hardly any reduction is a timeout. Reno answers each loss, the others each flight with losses:
            // beyond the first there are p W of them in the flight during which it is found. Their number is Poisson's.
            let [reno, newreno, sack] = ran.map(|ran| (ran.reductions as f64, ran.window));
            for (reductions, window) in [newreno, sack] {
                let (more, expected) = (reno.0 / reductions - 1.0, p * window);
                let chance = 3.0 * (expected / reductions).sqrt() + 3.0 / reductions;
                assert!((more - expected).abs() < chance, "p = {p}: {more:.3} more reductions, not {expected:.3}");
            }
        }
    }
}

#[test]
fn cubic_under_independent_losses_is_the_fluid_s() {
    // From where it is Reno's law (p = 0.01) to where it is the cube's (0.0003: sqrt(1.5 / p) is 71, the cube's own
    // 82).
    const TEETH: f64 = 800.0;
    for p in [0.0003, 0.001, 0.01] {
        for is_linux in [false, true] {
            let packets = (TEETH / p) as u64;
            let mut losses = Stream::named(1, "losses");
            let ran = run(&cubic(is_linux), packets, move |_| losses.chance(p));
            let mut losses = Stream::named(1, "losses");
            // Linux's estimate of Reno's window (tcp_cubic.c, tcp_friendliness) never rises faster than at first.
            let fluid = Fluid { catches_up: !is_linux }.mean_window(packets, |_| losses.chance(p));
            // A loss at the edge of a flight may be hidden in one and count in the other: in about p W / 4 of the
            // teeth, 6 of 800, and it is worth a tooth. Three times the root of that.
            let chance = 0.01 * fluid;
            let above = chance + if is_linux { DISCRETE } else { 0.0 };
            let range = fluid - DISCRETE - chance..fluid + above;
            assert!(range.contains(&ran.window), "linux: {is_linux}, p = {p}: {:.2}, not in {range:.2?}", ran.window);
        }
    }
}

#[test]
fn cubic_is_flat_at_its_plateau() {
    // RFC 9438 §4.2: K = cbrt(W_max (1 - beta) / C) seconds after the reduction the window is W_max again, and on
    // either side of it C delta^3 away, whatever the round-trip time; or at Reno's estimate (§4.3), if that is more:
    // 0.53 segments a round trip and, but for Linux, one from W_max on.
    for (w_max, k) in [(100, 4.217), (300, 6.082), (1_000, 9.086)] {
        for is_linux in [false, true] {
            let config = Config { initial_window: w_max, ..cubic(is_linux) };
            let mut bench = Bench::new(&config);
            bench.writes_down = false;
            bench.write(CLIENT, u64::MAX / 2).lose(CLIENT, Kind::Data, &[1]);
            // The first acknowledgement after the recovery, at 200, begins the epoch.
            bench.run_to(200);
            let w_max = f64::from(w_max);
            assert!((bench.ends[CLIENT].ssthresh() / 1e3 - 0.7 * w_max).abs() <= 1.0);
            let mut last = 0.0;
            for delta in [-2.0, -1.0, 0.0, 1.0, 2.0_f64] {
                bench.run_to(200 + ((k + delta) * 1e3) as u64);
                let (window, cube) = (bench.ends[CLIENT].cwnd() / 1e3, w_max + 0.4 * delta * delta * delta);
                let (round_trips, until_w_max) = ((k + delta) / RTT, 0.3 * w_max / 0.53);
                let faster = if is_linux { 0.0 } else { (round_trips - until_w_max).max(0.0) * 0.47 };
                let curve = cube.max(0.7 * w_max + 0.53 * round_trips + faster);
                // Acknowledgements come a round trip apart on the bench, and the window is of the last ones: the slope,
                // 1.2 delta^2 a second, times 0.1 s; and a whole segment in Linux.
                let lag = 1.2 * delta * delta * RTT + if is_linux { 1.0 } else { 0.1 };
                assert!(
                    (window - curve).abs() <= lag,
                    "linux: {is_linux}, {delta} s from K: {window:.2} segments, not {curve:.2} +- {lag:.2}"
                );
                assert!(window >= last, "it never falls");
                last = window;
            }
        }
    }
}

/// Data centre TCP in a window of `segments`.
fn dctcp(segments: u32) -> Bench {
    let config = Config {
        ecn: EcnMode::On,
        control: Control::Dctcp,
        ecn_floor: 2,
        initial_window: segments,
        window: u64::from(segments) * 1_000,
        ..of(Repair::Sack)
    };
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.write(CLIENT, u64::MAX / 2);
    bench
}

/// Alpha at the next reduction, which takes alpha / 2 of the window.
fn alpha(bench: &mut Bench) -> f64 {
    let reductions = bench.ends[CLIENT].stats().ecn_reductions;
    let mut before = bench.ends[CLIENT].cwnd();
    while bench.ends[CLIENT].stats().ecn_reductions == reductions {
        before = bench.ends[CLIENT].cwnd();
        assert!(bench.step(Time::NEVER), "the flow goes on");
    }
    2.0 * (1.0 - bench.ends[CLIENT].cwnd() / before)
}

#[test]
fn dctcp_forgets_a_sixteenth_a_window() {
    // RFC 8257 §3.3 and §4.2: alpha is 1 at first and (15/16)^n after n windows without marks, 0.596719 after 8 and
    // 0.356074 after 16. The window of ten goes out at 0, 100, ...; the first acknowledgement at 100 ends the first
    // observation, that at 100 n the n-th. The mark is on the fifth of the flight whose acknowledgements come then.
    for (windows, expected) in [(1, 0.9375), (8, 0.596_719), (16, 0.356_074)] {
        let mut bench = dctcp(10);
        bench.mark(CLIENT, Kind::Data, &[10 * (windows - 1) + 5]);
        let alpha = alpha(&mut bench);
        assert!((alpha - expected).abs() < 1e-6, "after {windows} windows: {alpha}");
    }
}

#[test]
fn dctcp_learns_the_share_of_marks() {
    // Every fourth packet is marked, for ever. In each window alpha comes a sixteenth nearer to the share F in it, and
    // its reduction follows. Windows hold whole packets: F is within 1/W of 1/4 each time, and alpha, an average of
    // such, too.
    let mut bench = dctcp(200);
    bench.script(
        |packet| {
            if packet.kind == Kind::Data && packet.number.is_multiple_of(4) { Fate::Mark } else { Fate::Pass }
        },
    );
    bench.run_to(20_000);
    for _ in 0..50 {
        let window = bench.ends[CLIENT].cwnd() / 1e3;
        let alpha = alpha(&mut bench);
        assert!((alpha - 0.25).abs() < 1.0 / window, "{alpha} with a window of {window:.1}");
    }
}

/// Throughput in segments a second of a flow with the round-trip time of the bench and `extra_ms`, over `seconds` after
/// half as many. `lost` is asked about each first transmission.
fn throughput(
    config: &Config,
    extra_ms: u64,
    seconds: u64,
    mut lost: impl FnMut(&common::Packet) -> bool + 'static,
) -> f64 {
    let mut bench = Bench::new(config);
    bench.writes_down = false;
    bench.write(CLIENT, u64::MAX / 2);
    let longer = Fate::Late(base::Span::from_ms(extra_ms));
    bench.script(move |packet| match packet.kind {
        Kind::Data if lost(packet) => Fate::Lose,
        Kind::Data | Kind::Resent => longer,
        _ => Fate::Pass,
    });
    bench.run_to(seconds * 500);
    let before = bench.ends[CLIENT].acknowledged();
    bench.run_to(seconds * 1_500);
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
    (bench.ends[CLIENT].acknowledged() - before) as f64 / 1e3 / seconds as f64
}

/// The exponent `a` in throughput ~ 1 / RTT^a, from round-trip times of 100 and 200 ms.
fn slope(short: f64, long: f64) -> f64 {
    ln(short / long) / ln(2.0)
}

/// Loses the first packet sent after each multiple of the period, and one early, before slow start gets far.
fn at_common_instants(period_ms: u64) -> impl FnMut(&common::Packet) -> bool {
    let mut last = 0;
    move |packet| {
        let now = packet.at.ns() / 1_000_000 / period_ms;
        now > std::mem::replace(&mut last, now) || packet.number == 100
    }
}

#[test]
fn reno_is_unfair_to_long_round_trips_by_one_power_or_two() {
    // Losses at the same instants: a window grows by T / RTT between two of them, less the round trip of recovery, and
    // takes RTT for each of its segments: 1 / RTT^2 (Lakshman and Madhow 1997). The long one's 147 segments are whole.
    let config = Config { limited_transmit: true, ..of(Repair::Sack) };
    let [short, long] = [0, 100].map(|extra| throughput(&config, extra, 200, at_common_instants(20_000)));
    let repair = ((20.0 - RTT) / (20.0 - 2.0 * RTT)).log2();
    assert!((slope(short, long) - 2.0 - repair).abs() < DISCRETE / 147.0 / ln(2.0), "{}", slope(short, long));
    // Losses of the same share of packets: windows are the same, 1 / RTT. The short one meets 2600 of them, the long
    // one half of that: three times the root of both, each worth half.
    let p = 0.003;
    let [short, long] = [0, 100].map(|extra| {
        let mut losses = Stream::named(1, "losses");
        throughput(&config, extra, 4_000, move |_| losses.chance(p))
    });
    let chance = 1.5 * (1.0 / 2_600.0 + 1.0 / 1_300.0_f64).sqrt() / ln(2.0);
    assert!((slope(short, long) - 1.0).abs() < chance, "{}", slope(short, long));
}

#[test]
fn cubic_is_linear_in_the_round_trip_time() {
    // RFC 9438 §3.3: windows that lose at the same instants are equal, for they grow with time: 1 / RTT. Between two
    // losses each has the period less the round trip of its recovery, and at most one more by which it follows its
    // curve; the window goes with the cube of that.
    for is_linux in [false, true] {
        let [short, long] = [0, 100].map(|extra| throughput(&cubic(is_linux), extra, 200, at_common_instants(8_000)));
        let late = 3.0 * ((8.0 - 2.0 * RTT) / (8.0 - 4.0 * RTT)).log2();
        let slope = slope(short, long);
        assert!((1.0..1.0 + late).contains(&slope), "linux: {is_linux}, {slope}");
    }
}
