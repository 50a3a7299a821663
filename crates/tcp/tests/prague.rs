//! Prague against the numbers of draft-briscoe-iccrg-prague-congestion-control, and TCP Prague for Linux against its
//! own, end to end.

use crate::common::{Bench, CLIENT, Fate, Kind, SERVER, plain};
use base::{Ecn, Span, Stream};
use tcp::{Config, Control, EcnMode, Reduction, Repair};

fn prague() -> Config {
    Config {
        control: Control::Prague,
        ecn: EcnMode::Accurate,
        ect: Ecn::Ect1,
        repair: Repair::Sack,
        dsack: true,
        timestamps: true,
        initial_window: 10,
        ..plain()
    }
}

fn prague_linux() -> Config {
    Config { control: Control::PragueLinux, ..prague() }
}

/// A long flow over a round trip of `rtt`, each packet of which is marked with chance `mark`: the mean window between
/// two instants, in segments.
fn mean_window(rtt: Span, mark: f64, seconds: [u64; 2]) -> f64 {
    mean_window_of(&prague(), rtt, mark, seconds)
}

fn mean_window_of(config: &Config, rtt: Span, mark: f64, [from_s, to_s]: [u64; 2]) -> f64 {
    let mut bench = Bench::new(config);
    bench.writes_down = false;
    bench.delay = rtt / 2;
    bench.write(CLIENT, u64::MAX / 2);
    let mut stream = Stream::named(7, "marks");
    bench.script(move |packet| if packet.from == CLIENT && stream.chance(mark) { Fate::Mark } else { Fate::Pass });
    bench.run_to(from_s * 1_000);
    let (mut sum, mut at) = (0.0, bench.now);
    let begin = at;
    while at.secs_f64() < to_s as f64 && bench.step(base::Time::NEVER) {
        sum += bench.ends[CLIENT].cwnd() * bench.now.since(at).secs_f64();
        at = bench.now;
    }
    sum / at.since(begin).secs_f64() / 1_000.0
}

#[test]
fn the_window_is_the_inverse_of_the_share_of_marks() {
    // A reduction takes p W / 2, with alpha = p. The next may come when a round trip is over, and comes with the first
    // mark after that, 1/p segments or 1 / (p W) round trips later. In each of these 1 - p segments are won. With
    // x = p W: x / 2 = (1 - p) (1 + 1 / x).
    let p = 0.1;
    let won: f64 = 1.0 - p;
    let expected = (won + (won * won + 2.0 * won).sqrt()) / p;
    let window = mean_window(Span::from_ms(50), p, [20, 120]);
    assert!((window / expected - 1.0).abs() < 0.05, "{window} and {expected}");
}

#[test]
fn round_trips_below_25_ms_give_the_same_rate() {
    // 500 rounds after slow start: W / R is that of 25 ms, so that W(10 ms) = 0.4 W(25 ms). Before that, W does not
    // depend on R. To within a tenth: in a virtual round trip there are as many packets, and as many marks.
    let marks = 0.05;
    let long = mean_window(Span::from_ms(25), marks, [60, 200]);
    // Two round trips of 20 ms are longer than the virtual one: a mark that is passed over holds up no other.
    for ms in [10, 20] {
        let short = mean_window(Span::from_ms(ms), marks, [60, 200]);
        assert!((short / long * 25.0 / ms as f64 - 1.0).abs() < 0.1, "{short} of {ms} ms and {long}");
    }
    // Rounds of 10 ms: 4 s are not 500 of them.
    let early = mean_window(Span::from_ms(10), marks, [1, 4]);
    assert!(early > 0.7 * long, "{early} and {long}");
}

#[test]
fn the_first_mark_halves_the_window_and_ends_slow_start() {
    // alpha is 1 until something was marked.
    let mut bench = Bench::new(&prague());
    bench.spacing = Span::from_us(100);
    bench.write(CLIENT, 1_000_000).mark(CLIENT, Kind::Data, &[5]).run_to(102);
    let end = &bench.ends[CLIENT];
    // Four acknowledgements of a segment each made the window 14, and the fifth halves that; those behind it let it
    // grow by less than a segment a round trip, in the same round trip too.
    assert_eq!(end.ssthresh(), 7_000.0);
    assert!((7_000.0..8_000.0).contains(&end.cwnd()), "{}", end.cwnd());
    assert_eq!(end.stats().ecn_reductions, 1);
    assert!(bench.packets(CLIENT, Kind::Data).all(|packet| packet.segment.ecn == Ecn::Ect1));
}

#[test]
fn marks_are_answered_once_a_round_trip_and_by_their_share() {
    // A long time without marks but the first leaves little of alpha: (15/16)^n.
    let mut bench = Bench::new(&prague());
    bench.write(CLIENT, u64::MAX / 2).mark(CLIENT, Kind::Data, &[5]).run_to(4_050);
    let sent = bench.packets(CLIENT, Kind::Data).count();
    bench.mark(CLIENT, Kind::Data, &[sent + 1, sent + 2, sent + 3]).run_to(4_150);
    let before = bench.ends[CLIENT].cwnd();
    while bench.ends[CLIENT].stats().ecn_reductions < 2 {
        assert!(bench.step(base::Time::NEVER));
    }
    // 40 rounds of 100 ms, to within the two at the ends and the round in which slow start ended.
    let left = bench.ends[CLIENT].cwnd() / before;
    let of = |rounds: i32| 1.0 - (15.0_f64 / 16.0).powi(rounds) / 2.0;
    assert!((of(37)..of(43)).contains(&left), "{left}");
    bench.run_to(4_249);
    assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, 2);
}

#[test]
fn a_loss_halves_the_window() {
    let mut bench = Bench::new(&prague());
    bench.write(CLIENT, 3_000_000).mark(CLIENT, Kind::Data, &[5]).run_to(4_050);
    let (sent, before) = (bench.packets(CLIENT, Kind::Data).count(), bench.ends[CLIENT].cwnd());
    bench.lose(CLIENT, Kind::Data, &[sent + 2]).run_to(4_260);
    let end = &bench.ends[CLIENT];
    assert_eq!((end.stats().recoveries, end.stats().timeouts), (1, 0));
    // Growth until the loss is found is two segments at most.
    assert!((end.ssthresh() - before / 2.0).abs() <= 1_000.0, "{} of {before}", end.ssthresh());
    bench.run();
    assert_eq!(bench.ends[SERVER].received(), 3_000_000);
}

#[test]
fn without_counts_it_is_reno_over_ect_0() {
    // The server knows RFC 3168 alone.
    let client = Config { handshake: true, ..prague() };
    let server = Config { ecn: EcnMode::On, ect: Ecn::Ect0, control: Control::Reno, ..client.clone() };
    let mut bench = Bench::of(&client, &server);
    bench.write(CLIENT, u64::MAX / 2).mark(CLIENT, Kind::Data, &[400]).run_to(6_000);
    assert!(bench.packets(CLIENT, Kind::Data).all(|packet| packet.segment.ecn == Ecn::Ect0));
    let before = bench.ends[CLIENT].cwnd();
    let sent = bench.packets(CLIENT, Kind::Data).count();
    bench.mark(CLIENT, Kind::Data, &[sent + 1]);
    while bench.ends[CLIENT].stats().ecn_reductions < 2 {
        assert!(bench.step(base::Time::NEVER));
    }
    // However few marks there were: half, and growth of two round trips at most until then.
    let left = bench.ends[CLIENT].ssthresh();
    assert!((left - before / 2.0).abs() <= 1_000.0, "{left} of {before}");
}

#[test]
fn segments_leave_at_window_over_round_trip() {
    // In congestion avoidance, and in bursts of a quarter of a millisecond but a segment at least.
    let mut bench = Bench::new(&Config { initial_window: 100, ..prague() });
    bench.write(CLIENT, u64::MAX / 2).mark(CLIENT, Kind::Data, &[5]).run_to(2_000);
    let (rate, cwnd) = (bench.ends[CLIENT].pacing_rate().expect("it paces"), bench.ends[CLIENT].cwnd());
    assert!((rate / (cwnd / 0.1) - 1.0).abs() < 0.02, "{rate} with {cwnd}");
    let times: Vec<_> = bench.packets(CLIENT, Kind::Data).map(|packet| packet.at).collect();
    let times = &times[times.len() - 40..];
    let longest = times.chunk_by(|one, other| one == other).map(<[_]>::len).max();
    assert_eq!(longest, Some(1));
}

#[test]
fn linux_goes_step_by_step_to_a_window_that_the_first_mark_halved() {
    let mut bench = Bench::new(&prague_linux());
    bench.spacing = Span::from_us(100);
    bench.write(CLIENT, 1_000_000).mark(CLIENT, Kind::Data, &[5]).run_to(102);
    let end = &bench.ends[CLIENT];
    // Four acknowledgements made the window 14. The fifth halves the fractional one, and takes a segment off the
    // other, as do the five behind it.
    assert_eq!((end.cwnd(), end.ssthresh()), (8_000.0, 8_000.0));
    assert_eq!(end.stats().ecn_reductions, 1);
    bench.run_to(103);
    let mut last = bench.ends[CLIENT].cwnd();
    let mut stream = Stream::named(3, "marks");
    bench.script(move |packet| if packet.from == CLIENT && stream.chance(0.1) { Fate::Mark } else { Fate::Pass });
    while bench.now.secs_f64() < 60.0 && bench.step(base::Time::NEVER) {
        let cwnd = bench.ends[CLIENT].cwnd();
        assert!((cwnd - last).abs() <= 1_000.0 && cwnd >= 2_000.0, "{last} to {cwnd}");
        last = cwnd;
    }
}

#[test]
fn linux_has_its_window_back_at_once_where_a_loss_was_none() {
    // prague_cwnd_undo. A segment is overtaken by 60 ms, is sent again, and its timestamp tells so when it arrives.
    let config = Config { undo: true, repair: Repair::Rack, reduction: Reduction::Proportional, ..prague_linux() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, u64::MAX / 2).mark(CLIENT, Kind::Data, &[5]).run_to(3_050);
    let sent = bench.packets(CLIENT, Kind::Data).count();
    let before = bench.ends[CLIENT].cwnd();
    bench.delay(CLIENT, Kind::Data, &[sent + 2], Span::from_ms(60));
    let mut least = before;
    while bench.ends[CLIENT].stats().undone == 0 {
        least = least.min(bench.ends[CLIENT].cwnd());
        assert!(bench.step(base::Time::NEVER) && bench.now.secs_f64() < 4.0);
    }
    assert!(least < before - 1_000.0 && bench.ends[CLIENT].cwnd() >= before, "{before}, {least}");
}

#[test]
fn linux_gives_short_round_trips_their_rate_after_four_rounds() {
    let of = |ms, seconds| mean_window_of(&prague_linux(), Span::from_ms(ms), 0.05, seconds);
    let (long, short) = (of(25, [10, 110]), of(10, [10, 110]));
    assert!((short / long / 0.4 - 1.0).abs() < 0.1, "{short} and {long}");
    // Where the draft has 500 rounds, 5 s.
    let early = of(10, [1, 5]);
    assert!(early < 0.6 * long, "{early} and {long}");
}

#[test]
fn linux_controls_the_rate_where_the_window_is_small() {
    // Each round wins (1 - p) packets of 1500 bytes and loses p / 2 of the rate: 2 (1 - p) / p of these a virtual round
    // trip of 25 ms, or more, as the next reduction waits for a mark. The window follows, over whatever round trip; so
    // the rate is the same over 25 ms and over 5 ms.
    let goodput = |ms| {
        let mut bench = Bench::new(&prague_linux());
        bench.writes_down = false;
        bench.delay = Span::from_ms(ms) / 2;
        bench.write(CLIENT, u64::MAX / 2);
        let mut stream = Stream::named(5, "marks");
        bench.script(move |packet| if packet.from == CLIENT && stream.chance(0.6) { Fate::Mark } else { Fate::Pass });
        bench.run_to(20_000);
        let before = bench.ends[SERVER].received();
        bench.run_to(140_000);
        (bench.ends[SERVER].received() - before) as f64 / 120.0
    };
    let expected = 2.0 * (1.0 - 0.6) / 0.6 * 1_500.0 / 0.025;
    let (long, short) = (goodput(25), goodput(5));
    assert!((1.0..1.3).contains(&(long / expected)), "{long} and {expected}");
    assert!((short / long - 1.0).abs() < 0.15, "{short} and {long}");
}
