//! Controllers against their documents' numbers, end to end: HyStart++, ABE, CUBIC's curve, pacing.

use crate::common::{Bench, CLIENT, Fate, Kind, plain};
use base::{Span, Time};
use tcp::{Config, Control, CubicDialect, EcnMode, Hystart, Repair};

/// A flow without end that is alone on a path of 100 ms with a bottleneck of 1000 segments a second and a buffer
/// without end: what is out when slow start is over, in segments.
fn left_slow_start_at(config: &Config) -> f64 {
    let mut bench = Bench::new(config);
    bench.writes_down = false;
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, u64::MAX / 2);
    while bench.ends[CLIENT].ssthresh().is_infinite() && bench.now < Time::ZERO + Span::from_secs(10) {
        bench.step(Time::NEVER);
    }
    assert_eq!(bench.ends[CLIENT].stats().retransmitted, 0, "nothing was lost");
    bench.ends[CLIENT].cwnd() / 1_000.0
}

#[test]
fn slow_start_ends_before_anything_is_lost() {
    for control in [Control::Reno, Control::Cubic] {
        let config = Config { control, initial_window: 10, repair: Repair::Sack, ..plain() };
        let of = |hystart| left_slow_start_at(&Config { hystart, ..config.clone() });
        // The path holds 100 segments. Without anything slow start goes on: ten seconds, 10000 segments acknowledged.
        assert!(of(Hystart::Off) > 9_000.0);
        // RFC 9406: windows of 10, 20, ..., 80, 160; while that of 160 builds, its queue rises to 60 ms, and its round
        // is the first whose shortest round trip is longer than the last's by an eighth of it, 12.5 ms, at its eighth
        // sample, or the next one's. Five rounds at a quarter of the speed follow, at most 1.25^5 of it.
        let window = of(Hystart::Plus);
        assert!((100.0..320.0 * 3.06).contains(&window), "{control:?}: {window}");
        // Linux's ends at once, at the train of half a round trip: 50 segments in 50 ms, or at the delay.
        let window = of(Hystart::Linux);
        assert!((50.0..=320.0).contains(&window), "{control:?}: {window}");
    }
}

#[test]
fn a_loss_ends_hystart_plus_for_good() {
    // Slow start after the timeout is standard slow start, whatever the delay: nothing ends it but the threshold.
    let config = Config { hystart: Hystart::Plus, initial_window: 10, repair: Repair::NewReno, ..plain() };
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.write(CLIENT, 400_000);
    // All of the third window.
    bench.script(
        |packet| if packet.kind == Kind::Data && (31..=70).contains(&packet.number) { Fate::Lose } else { Fate::Pass },
    );
    bench.run();
    assert_eq!(bench.ends[CLIENT].acknowledged(), 400_000);
    assert!(bench.ends[CLIENT].ssthresh().is_finite());
}

/// The window before and after one mark or loss of segment 200, in segments.
fn reduced(control: Control, abe: bool, whole_segments: bool, fate: Fate) -> (f64, f64) {
    let config = Config {
        control,
        abe,
        whole_segments,
        cubic: if whole_segments { CubicDialect::Linux } else { CubicDialect::Rfc },
        byte_counting: true,
        ecn: EcnMode::On,
        repair: Repair::Sack,
        initial_window: 100,
        ..plain()
    };
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.spacing = Span::from_us(100);
    bench.write(CLIENT, 1_000_000);
    bench.script(move |packet| if packet.kind == Kind::Data && packet.number == 100 { fate } else { Fate::Pass });
    let mut before = 0.0;
    while bench.ends[CLIENT].ssthresh().is_infinite() {
        before = bench.ends[CLIENT].cwnd() / 1_000.0;
        assert!(bench.step(Time::NEVER));
    }
    (before, bench.ends[CLIENT].ssthresh() / 1_000.0)
}

#[test]
fn abe_answers_a_mark_by_less() {
    // RFC 8511 §3.1: 0.8 for Reno, 0.85 for CUBIC; a loss is answered as ever. Whole segments round down.
    for whole in [false, true] {
        for (control, loss, mark) in [(Control::Reno, 0.5, 0.8), (Control::Cubic, 0.7, 0.85)] {
            for (abe, fate, factor) in [
                (false, Fate::Mark, loss),
                (true, Fate::Mark, mark),
                (false, Fate::Lose, loss),
                (true, Fate::Lose, loss),
            ] {
                let (before, after) = reduced(control, abe, whole, fate);
                let expected = factor * before;
                // Linux's CUBIC has 717/1024 for 0.7. A segment or two may be counted as out or not.
                let slack = if whole { 1.5 } else { 1.0 };
                assert!(
                    (expected - slack..=expected + 0.5).contains(&after),
                    "{control:?}, abe {abe}, {fate:?}, whole {whole}: {before} to {after}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn segments_leave_at_the_pacing_rate() {
    // Reno, 20 segments of 1000 bytes in 100 ms; slow start below half of the threshold: twice that, 400 kB/s. Bursts
    // are two segments, the least, every 5 ms.
    let config = Config { pacing: true, initial_window: 20, handshake: true, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000);
    bench.run_to(400);
    let sent: Vec<u64> = bench.packets(CLIENT, Kind::Data).map(|packet| packet.at.ns() / 1_000).collect();
    // The first ten go out at once; the burst with the tenth is the first to be waited for.
    let expected: Vec<u64> = (0..20_u64).map(|k| 100_000 + if k < 10 { 0 } else { (k / 2 - 4) * 5_000 }).collect();
    assert_eq!(sent, expected);
}

#[test]
fn pacing_does_not_change_what_is_delivered() {
    // A path that a window of 20 does not fill: a paced flow delivers a window a round trip too, and ends no more than
    // the round trip later that it spreads a window over.
    let mut ends = vec![];
    for pacing in [false, true] {
        let config = Config { pacing, initial_window: 20, window: 20_000, handshake: true, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 400_000).close(CLIENT);
        bench.run();
        bench.assert_complete(400_000, 0);
        ends.push(bench.packets(CLIENT, Kind::Data).last().expect("there is data").at);
    }
    assert!(ends[1] >= ends[0] && ends[1] <= ends[0] + Span::from_ms(100), "{ends:?}");
}
