//! SCReAM against a second writing of its draft, and what must hold of it whatever it hears.

mod scream_second;

use base::{Rate, Span, Stream, Time};
use media::{Heard, Mode, Rates, Scream};
use proptest::prelude::*;
use scream_second::{NOON, Report, Second};

const RATES: [u64; 2] = [150_000, 20_000_000];

fn both(mode: Mode, segment: u32, frame_period: Span) -> (Scream, Second) {
    let rates = RATES.map(Rate::from_bps);
    let first = Scream::new(mode, Rates::new(rates, segment, frame_period));
    let bps = RATES.map(|bps| bps as f64);
    (first, Second::new(mode == Mode::L4s, f64::from(segment), bps, frame_period.secs_f64()))
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

/// Tells both the same for so many reports and compares all that they say after each.
fn compare(mode: Mode, seed: u64, reports: u32) {
    let mut stream = Stream::named(seed, "scream");
    let segment = [1000, 1200, 1460][stream.below(3) as usize];
    let period = Span::from_us(16_667 * (1 + stream.below(3)));
    let (mut first, mut second) = both(mode, segment, period);
    let mut now = Time::from_secs_f64(NOON);
    // How congested a stretch of reports is changes now and then, so that all is met: quiet times longer than a hundred
    // round trips, marks of all, waiting beyond the target, losses.
    let (mut congested, mut s_rtt) = (0.0, 0.02);
    for k in 0..reports {
        if k % 200 == 0 {
            congested = [0.0, 0.0, 0.02, 0.3, 1.0][stream.below(5) as usize];
            s_rtt = 0.002 + 0.15 * stream.unit() * stream.unit();
        }
        now += Span::from_us(500 + stream.below(40_000));
        s_rtt *= 0.95 + 0.1 * stream.unit();
        let units = 1 + stream.below(16) as u32;
        let units_ce = (0..units).filter(|_| stream.chance(congested * 0.6)).count() as u32;
        let size = f64::from(segment);
        let in_flight = first.window() * (0.2 + 1.5 * stream.unit());
        let heard = Heard {
            acked: f64::from(units) * size,
            acked_ce: f64::from(units_ce) * size,
            units,
            units_ce,
            is_loss: stream.chance(congested * 0.1),
            waits: stream.unit() * (0.002 + congested * 0.12),
            round_trip: s_rtt,
            in_flight,
        };
        let told = Report {
            acked: heard.acked,
            acked_ce: heard.acked_ce,
            units: f64::from(units),
            units_ce: f64::from(units_ce),
            lost: heard.is_loss,
            qdelay: heard.waits,
            s_rtt,
            bytes_in_flight: in_flight,
        };
        first.on_sent(in_flight * 1.1);
        second.sent(in_flight * 1.1);
        if stream.chance(0.5) {
            let mean = first.rate() * period.secs_f64() / 8.0;
            let (bytes, waited) = (mean * (0.3 + 1.6 * stream.unit()), stream.unit() * 0.05);
            first.on_frame(bytes, waited);
            second.frame(bytes, waited);
        }
        first.on_report(&heard, now);
        second.report(&told, now.secs_f64());
        let pairs = [
            (first.window(), second.ref_wnd, "window"),
            (first.alpha(), second.l4s_alpha, "alpha"),
            (first.rate(), second.target_bitrate, "rate"),
            (first.pace(), second.pace_bitrate(), "pace"),
        ];
        for (own, other, what) in pairs {
            assert!(is_close(own, other), "{mode:?}, seed {seed}, report {k}: {what} {own} and {other}");
        }
        let room = second.send_wnd(in_flight);
        assert!(first.lets_out(room * 0.999, in_flight) || room < 0.0);
        assert!(!first.lets_out(room.abs() * 1.001 + 1.0, in_flight));
    }
}

#[test]
fn a_second_writing_says_the_same() {
    for seed in 0..60 {
        compare(Mode::L4s, seed, 4000);
        compare(Mode::Classic, seed, 2000);
    }
}

fn heard(units: u32, units_ce: u32, waits: f64, round_trip: f64, in_flight: f64) -> Heard {
    let bytes = |units: u32| f64::from(units) * 1200.0;
    let (acked, acked_ce) = (bytes(units), bytes(units_ce));
    Heard { acked, acked_ce, units, units_ce, is_loss: false, waits, round_trip, in_flight }
}

/// With nothing in the way the window grows until the rate is the greatest, and no further: within ten seconds from
/// 0.15 to 20 Mb/s at a round trip of 20 ms.
#[test]
fn without_congestion_the_rate_becomes_the_greatest() {
    let (mut scream, _) = both(Mode::L4s, 1200, Span::from_us(16_667));
    let (mut now, mut reached) = (Time::ZERO, None);
    for _ in 0..1500 {
        now += Span::from_ms(10);
        let window = scream.window();
        let units = (scream.rate() * 0.01 / 8.0 / 1200.0).max(1.0) as u32;
        scream.on_report(&heard(units, 0, 0.0, 0.02, window), now);
        if scream.rate() >= RATES[1] as f64 {
            reached.get_or_insert((now, window));
        }
    }
    let (at, window) = reached.expect("it reaches the greatest");
    assert!(at < Time::ZERO + Span::from_secs(10), "{at:?}");
    assert!(scream.window() <= 1.1 * window, "{} after {window}", scream.window());
    assert!(is_close(scream.pace(), 4.0 * 1.5 * RATES[1] as f64), "pacing is relaxed at the greatest rate");
}

/// What one report takes from a window (§4.2.2.1).
#[test]
fn a_loss_takes_three_tenths_a_classic_mark_two_and_a_scalable_mark_half_of_alpha() {
    let grown = |mode| {
        let (mut scream, _) = both(mode, 1200, Span::from_ms(33));
        let mut now = Time::ZERO;
        for _ in 0..200 {
            now += Span::from_ms(25);
            let window = scream.window();
            scream.on_report(&heard((window / 1200.0) as u32, 0, 0.0, 0.025, window), now);
        }
        assert!(scream.window() > 20_000.0, "{}", scream.window());
        (scream, now)
    };
    // Less than a round trip after the last growth, a report only answers.
    let (mut scream, now) = grown(Mode::L4s);
    let before = scream.window();
    let at = now + Span::from_ms(1);
    scream.on_report(&Heard { is_loss: true, ..heard(1, 0, 0.0, 0.025, before) }, at);
    assert!(is_close(scream.window(), 0.7 * before));

    let (mut scream, now) = grown(Mode::Classic);
    let before = scream.window();
    scream.on_report(&heard(4, 1, 0.0, 0.025, before), now + Span::from_ms(1));
    assert!(is_close(scream.window(), 0.8 * before));

    let (mut scream, now) = grown(Mode::L4s);
    let before = scream.window();
    // All of ten packets marked after none was: alpha is an eighth; the rest waited long, so that jitter is no excuse.
    scream.on_report(&heard(10, 10, 0.02, 0.025, before), now + Span::from_ms(12));
    assert!(is_close(scream.alpha(), 0.125));
    assert!(is_close(scream.window(), before * (1.0 - 0.125 / 2.0)), "{} {before}", scream.window());
}

proptest! {
    /// Whatever it hears, the window is at least the smallest and the rate within its bounds; both are numbers.
    #[test]
    fn the_rate_stays_within_its_bounds(
        reports in prop::collection::vec(
            (1_u64..200_000, 0_u32..20, 0_u32..20, any::<bool>(), 0.0..2.0_f64, 0.0001..3.0_f64, 0.0..1e7_f64),
            1..300,
        ),
    ) {
        for mode in [Mode::L4s, Mode::Classic] {
            let (mut scream, _) = both(mode, 1200, Span::from_ms(33));
            let mut now = Time::ZERO;
            for &(after, units, marked, is_loss, waits, round_trip, in_flight) in &reports {
                now += Span::from_us(after);
                let told = heard(units, marked.min(units), waits, round_trip, in_flight);
                scream.on_report(&Heard { is_loss, ..told }, now);
                scream.on_frame(in_flight / 100.0, waits);
                prop_assert!(scream.window() >= 3000.0 && scream.window().is_finite());
                prop_assert!((RATES[0] as f64..=RATES[1] as f64).contains(&scream.rate()));
                prop_assert!((0.0..=1.0).contains(&scream.alpha()));
                prop_assert!(scream.pace() >= 1.5 * scream.rate() && scream.pace() <= 6.0 * scream.rate() + 1.0);
            }
        }
    }
}
