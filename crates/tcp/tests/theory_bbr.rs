//! BBR on a path of known rate and delay, against what its rules say there.

use crate::common::{self, Bench, CLIENT, Fate, Kind, SERVER, at_ms, plain};
use base::{Span, Stream, Time};
use tcp::cc::Algorithm;
use tcp::cc::bbr::{Bbr, Mode};
use tcp::{Config, Control, Repair};

/// 10 Mb/s for packets of 1040 bytes, and 40 ms.
const SPACING: Span = Span::from_us(832);
const RTT: Span = Span::from_ms(40);
const SEGMENTS_PER_SECOND: f64 = 1e9 / 832_000.0;
/// What the path holds, segments: 48.08.
const BDP: f64 = SEGMENTS_PER_SECOND * 0.04;
/// A burst: 1.2 MB/s in 1/1024 s is one segment of 1000 bytes, and the least is two.
const BURST: f64 = 2.0;
const HIGH_GAIN: f64 = 739.0 / 256.0;

fn config() -> Config {
    Config {
        control: Control::Bbr,
        repair: Repair::Rack,
        initial_window: 10,
        handshake: true,
        byte_counting: true,
        whole_segments: true,
        ..plain()
    }
}

/// A flow without end over the path, from the client.
fn flow() -> Bench {
    let mut bench = Bench::new(&config());
    bench.writes_down = false;
    (bench.spacing, bench.delay) = (SPACING, RTT / 2);
    bench.write(CLIENT, u64::MAX / 2);
    bench
}

fn bbr(bench: &Bench) -> &Bbr {
    match bench.ends[CLIENT].controller() {
        Algorithm::Bbr(bbr) => bbr,
        other => panic!("{other:?}"),
    }
}

/// The window, what is out, and what was acknowledged, in segments.
fn cwnd(bench: &Bench) -> f64 {
    bench.ends[CLIENT].cwnd() / 1_000.0
}

fn out(bench: &Bench) -> f64 {
    bench.ends[CLIENT].stats().segments as f64 - acknowledged(bench)
}

fn acknowledged(bench: &Bench) -> f64 {
    bench.ends[CLIENT].acknowledged() as f64 / 1_000.0
}

/// Steps until the flow is in this mode; the instant.
fn until(bench: &mut Bench, mode: Mode) -> Time {
    while bbr(bench).mode() != mode {
        assert!(bench.step(Time::NEVER), "the flow goes on");
    }
    bench.now
}

#[test]
fn the_model_finds_rate_and_round_trip() {
    let mut bench = flow();
    for ms in 2_000..10_000 {
        bench.run_to(ms);
        let bbr = bbr(&bench);
        assert_eq!(bbr.mode(), Mode::ProbeBandwidth, "at {ms} ms");
        // A sample is of whole segments, over the time since one of them was acknowledged: exact while the bottleneck
        // is busy.
        let rate = bbr.rate() / SEGMENTS_PER_SECOND;
        assert!((rate - 1.0).abs() < 1e-9, "at {ms} ms: {rate}");
        assert_eq!(bbr.min_rtt(), Some(RTT), "at {ms} ms");
        // Two paths' worth rounded up, 97, the one segment that one acknowledgement tells of beyond what is expected of
        // it, three bursts; 104 is even. Two more while it probes for more, an acknowledgement each.
        let most = if bbr.pacing_gain() > 1.0 { 106.0 } else { 104.0 };
        assert!((104.0..=most).contains(&cwnd(&bench)), "at {ms} ms: {}", cwnd(&bench));
    }
}

#[test]
fn startup_doubles_every_round() {
    // A path so fast that it is never full. What is sent is G = 0.99 x 739/256 times what was delivered in a round
    // trip, which was sent a round trip before: s(t) = G times the mean of s from t - 2 RTT to t - RTT. s grows by g a
    // round trip with G (g - 1) = g^2 ln g, 2.042; and the window, by what is delivered, by no more than 2.
    let mut bench = flow();
    bench.spacing = Span::from_us(1);
    // The handshake, a round of ten segments and four more until that is what goes on.
    bench.run_to(240);
    let (mut rate, mut window) = (bbr(&bench).rate(), cwnd(&bench));
    for round in 7..12 {
        bench.run_to(40 * round);
        let (now, grown) = (bbr(&bench).rate(), cwnd(&bench));
        assert_eq!(bbr(&bench).mode(), Mode::Startup);
        // A burst of two segments at either end of the first of these rounds, which has 128 segments.
        let (least, most) = (2.0 * (1.0 - 4.0 / 128.0), 2.042 * (1.0 + 4.0 / 128.0));
        assert!((least..most).contains(&(now / rate)), "round {round}: {now} after {rate}");
        assert!(grown <= 2.0 * window, "round {round}: {grown} segments, after {window}");
        (rate, window) = (now, grown);
    }
}

#[test]
fn the_queue_of_startup_is_drained() {
    let mut bench = flow();
    let full_at = until(&mut bench, Mode::Drain);
    // The window in startup is 2.89 paths' worth, 139, and three bursts, of what the pacing rate makes a burst: three
    // segments, 148 in all; and it is full.
    let most = (BDP * HIGH_GAIN).ceil() + 9.0;
    assert!((most..=most + 2.0).contains(&out(&bench)), "{} of {most}", out(&bench));
    let drained_at = until(&mut bench, Mode::ProbeBandwidth);
    // What is above a path's worth goes at the rate less what is sent, 88/256 of 99 % of it.
    let excess = most - (BDP.ceil() + 3.0 * BURST + 1.0);
    let takes = excess / (SEGMENTS_PER_SECOND * (1.0 - 0.99 * 88.0 / 256.0));
    let took = drained_at.since(full_at).secs_f64();
    // A few segments more or less, of bursts and of whole numbers: four of them.
    assert!((took - takes).abs() < 4.0 / SEGMENTS_PER_SECOND / 0.66, "{took} against {takes}");
    // It looks at what will be out when the next burst departs: two segments at 34 % of the rate take as long as six
    // are delivered in.
    assert!(out(&bench) <= 56.0 + 6.0, "{}", out(&bench));
}

#[test]
fn the_round_trip_is_looked_for_every_ten_seconds() {
    let mut bench = flow();
    let mut last = None;
    for _ in 0..3 {
        let began = until(&mut bench, Mode::ProbeRtt);
        if let Some(last) = last {
            // Ten seconds after the last probe, with the next acknowledgement.
            let since = began.since(last);
            assert!((Span::from_secs(10)..Span::from_secs(10) + SPACING * 3).contains(&since), "{since:?}");
        }
        assert_eq!(cwnd(&bench), 4.0);
        // What is out falls to four segments: a round trip, with the queue there is. Then 200 ms, and the
        // acknowledgement after them; 4 segments come and go in it.
        let before = bench.ends[CLIENT].stats().segments;
        let ended = until(&mut bench, Mode::ProbeBandwidth);
        let lasted = ended.since(began);
        let (least, most) = (Span::from_ms(200) + RTT, Span::from_ms(200) + RTT * 2 + SPACING * 16);
        assert!((least..=most).contains(&lasted), "{lasted:?}");
        let sent = bench.ends[CLIENT].stats().segments - before;
        assert!(sent <= 4 * 7, "{sent} in 200 ms and two round trips");
        assert_eq!(bbr(&bench).min_rtt(), Some(RTT));
        assert!((bbr(&bench).rate() / SEGMENTS_PER_SECOND - 1.0).abs() < 1e-9, "few out say nothing of the rate");
        assert_eq!(cwnd(&bench), 104.0, "the window is what it was");
        last = Some(ended);
    }
}

#[test]
fn a_cycle_sends_more_then_less_then_as_much() {
    let mut bench = flow();
    bench.run_to(2_000);
    let (mut gains, mut last, mut began) = (vec![], bbr(&bench).pacing_gain(), bench.now);
    let (mut peak, mut trough) = (0.0_f64, f64::INFINITY);
    while bench.now < at_ms(9_000) {
        bench.step(Time::NEVER);
        (peak, trough) = (peak.max(out(&bench)), trough.min(out(&bench)));
        let gain = bbr(&bench).pacing_gain();
        if gain != last {
            gains.push((last, bench.now.since(began)));
            (last, began) = (gain, bench.now);
        }
    }
    for triple in gains[1..gains.len() - 1].windows(3) {
        let [(gain, lasted), (next, _), (after, _)] = triple else { unreachable!() };
        let lasted = lasted.secs_f64() / RTT.secs_f64();
        match *gain {
            // Until a quarter more is out, which takes a round trip and the queue that it makes.
            1.25 => assert!((1.0..1.5).contains(&lasted) && *next == 0.75 && *after == 1.0, "{triple:?}"),
            // A round trip, or until the queue is gone.
            0.75 => assert!((0.5..1.1).contains(&lasted) && *next == 1.0, "{triple:?}"),
            // Six of a round trip and the acknowledgement after it.
            _ => assert!((6.0..6.5).contains(&lasted) && *next == 1.25, "{triple:?}"),
        }
    }
    assert!(gains.len() > 3 * 15, "{} phases in seven seconds", gains.len());
    // A quarter more than a path's worth and what is in hand, rounded to bursts.
    assert!((1.25 * BDP..1.25 * BDP + 3.0 * BURST + 4.0).contains(&peak), "{peak}");
    assert!(trough >= BDP, "the path is never empty: {trough}");
}

#[test]
fn losses_do_not_slow_it_down() {
    // One in fifty at random: Reno would have 1.31 / sqrt(p), 9 segments. Here what is lost is made up for; every
    // delivery is one of the bottleneck.
    let mut bench = flow();
    let mut losses = Stream::named(1, "losses");
    bench.script(move |packet| match packet.kind {
        Kind::Data | Kind::Resent if losses.chance(0.02) => Fate::Lose,
        _ => Fate::Pass,
    });
    bench.run_to(2_000);
    let before = acknowledged(&bench);
    bench.run_to(62_000);
    let share = (acknowledged(&bench) - before) / 60.0 / SEGMENTS_PER_SECOND;
    // 98 % come through; each of six probes of the round trip takes 240 ms of the minute, 2.4 %; 1 % is the margin.
    assert!((0.93..=0.98).contains(&share), "{share}");
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
    assert!(bench.ends[SERVER].received() >= bench.ends[CLIENT].acknowledged());
}

#[test]
fn a_policer_is_found() {
    // A bucket of 20 segments that fills at 600 a second: half of what comes through the bottleneck.
    let mut bench = flow();
    bench.script(common::policer(20.0, 600.0));
    bench.run_to(6_000);
    let (before, lost) = (acknowledged(&bench), bench.ends[CLIENT].stats().retransmitted);
    bench.run_to(7_500);
    // The rate is the policer's to within the eighth by which the two intervals may differ.
    let rate = bbr(&bench).rate() / 600.0;
    assert!((1.0 - 0.125..1.0 + 0.125).contains(&rate), "{rate}");
    let share = (acknowledged(&bench) - before) / 1.5 / 600.0;
    assert!(share > 0.8, "{share}");
    let lost = (bench.ends[CLIENT].stats().retransmitted - lost) as f64 / 900.0;
    assert!(lost < 0.2, "{lost} are lost then");
}

#[test]
fn an_application_that_holds_back_does_not_lower_the_rate() {
    // A second of full speed, then two segments every 100 ms for three: the model stays.
    let mut bench = Bench::new(&config());
    bench.writes_down = false;
    (bench.spacing, bench.delay) = (SPACING, RTT / 2);
    bench.write(CLIENT, 1_000_000);
    (12..50).for_each(|k| {
        bench.write_at(100 * k, CLIENT, 2_000);
    });
    bench.run_to(1_100);
    assert_eq!(acknowledged(&bench), 1_000.0);
    let rate = bbr(&bench).rate();
    bench.run_to(5_000);
    assert_eq!(acknowledged(&bench), 1_000.0 + 2.0 * 38.0);
    assert_eq!(bbr(&bench).rate(), rate);
}

#[test]
fn two_flows_begin_their_cycles_apart() {
    // The phase follows from when the cycle begins: over starts a millisecond apart all seven come.
    let mut seen = std::collections::BTreeSet::new();
    for start in 0..60 {
        let mut bench = Bench::new(&config());
        bench.writes_down = false;
        (bench.spacing, bench.delay) = (SPACING, RTT / 2);
        bench.write_at(100 + start, CLIENT, 10_000_000);
        let began = until(&mut bench, Mode::ProbeBandwidth);
        // How long until it first probes for more tells the phase; none begins by sending less.
        assert_ne!(bbr(&bench).pacing_gain(), 0.75);
        while bbr(&bench).pacing_gain() != 1.25 {
            assert!(bench.step(Time::NEVER));
        }
        seen.insert((bench.now.since(began).secs_f64() / RTT.secs_f64()).floor() as u64);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
}
