//! BBR version 3 on a path of known rate and delay: the example test cases of draft-ietf-ccwg-bbr, each with numbers
//! that follow from the draft's constants, and the answer to marks.

use crate::common::{self, Bench, CLIENT, Fate, Kind, at_ms, plain};
use base::{Ecn, Span, Stream, Time};
use std::cell::Cell;
use std::rc::Rc;
use tcp::cc::Algorithm;
use tcp::cc::bbr3::{Bbr3, State};
use tcp::{Config, Control, EcnMode, Repair, RtoFloor};

/// 10 Mb/s for packets of 1040 bytes, and 40 ms.
const SPACING: Span = Span::from_us(832);
const RTT: Span = Span::from_ms(40);
const SEGMENTS_PER_SECOND: f64 = 1e9 / 832_000.0;
/// What the path holds, segments: 48.08.
const BDP: f64 = SEGMENTS_PER_SECOND * 0.04;

fn config() -> Config {
    Config {
        control: Control::Bbr3,
        repair: Repair::Rack,
        initial_window: 10,
        handshake: true,
        byte_counting: true,
        whole_segments: true,
        dsack: true,
        frto: true,
        undo: true,
        timestamps: true,
        ..plain()
    }
}

fn over_path(config: &Config) -> Bench {
    let mut bench = Bench::new(config);
    bench.writes_down = false;
    (bench.spacing, bench.delay) = (SPACING, RTT / 2);
    bench
}

/// A flow without end over the path, from the client.
fn flow() -> Bench {
    let mut bench = over_path(&config());
    bench.write(CLIENT, u64::MAX / 2);
    bench
}

fn bbr(bench: &Bench) -> &Bbr3 {
    match bench.ends[CLIENT].controller() {
        Algorithm::Bbr3(bbr) => bbr,
        other => panic!("{other:?}"),
    }
}

fn state(bench: &Bench) -> State {
    bbr(bench).state()
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

/// Steps until the flow is in this state; the instant.
fn until(bench: &mut Bench, wanted: State) -> Time {
    let end = bench.now + Span::from_secs(60);
    while state(bench) != wanted {
        assert!(bench.step(Time::NEVER) && bench.now < end, "no {wanted:?} by {:?}", bench.now);
    }
    bench.now
}

/// Steps until the flow is in another state; that state and how long it took.
fn next(bench: &mut Bench) -> (State, Span) {
    let (was, began) = (state(bench), bench.now);
    while state(bench) == was {
        assert!(bench.step(Time::NEVER), "the flow goes on");
    }
    (state(bench), bench.now.since(began))
}

/// A switch that scripts look at.
fn switch() -> (Rc<Cell<bool>>, Rc<Cell<bool>>) {
    let on = Rc::new(Cell::new(false));
    (on.clone(), on)
}

// ── startup and drain ──

#[test]
fn startup_ends_at_a_plateau_and_the_queue_is_drained() {
    let mut bench = flow();
    until(&mut bench, State::Drain);
    assert!(bbr(&bench).is_full());
    let rate = bbr(&bench).max_rate() / SEGMENTS_PER_SECOND;
    assert!((rate - 1.0).abs() < 0.02, "{rate}");
    // The window of startup: twice what the path holds, and what came at once beyond what was expected.
    assert!((2.0 * BDP - 1.0..2.0 * BDP + 12.0).contains(&out(&bench)), "{}", out(&bench));
    let excess = out(&bench) - BDP;
    let (after, took) = next(&mut bench);
    assert!(matches!(after, State::Down | State::Cruise), "{after:?}");
    // What is above a path's worth goes at the rate less half of 99 % of it; bursts of two segments.
    let takes = excess / (SEGMENTS_PER_SECOND * (1.0 - 0.99 * 0.5));
    assert!((took.secs_f64() - takes).abs() < 6.0 / SEGMENTS_PER_SECOND, "{took:?} for {takes}");
}

#[test]
fn drain_ends_after_three_rounds_where_the_queue_stays() {
    let mut bench = flow();
    let began = until(&mut bench, State::Drain);
    // A quarter of the rate: what is sent at half of the old one leaves more slowly than it comes.
    bench.spacing = SPACING * 4;
    let (after, took) = next(&mut bench);
    assert_eq!(after, State::Down, "since {began:?}");
    assert!(out(&bench) > BDP + 10.0, "{} are out", out(&bench));
    // Four rounds have begun: what was out, at the old rate, and three of at most 97 segments at the new one.
    let round = 97.0 * 4.0 / SEGMENTS_PER_SECOND;
    assert!((2.0 * round..3.3 * round).contains(&took.secs_f64()), "{took:?} of rounds of {round}");
}

#[test]
fn startup_ends_by_losses_before_the_pipe_is_full() {
    // A path that is never full, and one in ten of what is sent is lost: six ranges in a round of 60 segments or more.
    let mut bench = flow();
    bench.spacing = Span::from_us(1);
    let mut count = 0;
    bench.script(move |packet| {
        count += u32::from(packet.kind == Kind::Data);
        if packet.kind == Kind::Data && count % 10 == 0 && count > 60 { Fate::Lose } else { Fate::Pass }
    });
    until(&mut bench, State::Drain);
    let bbr = bbr(&bench);
    assert!(bbr.is_full() && bbr.most_long().is_finite());
    assert!(bbr.max_rate() < 20.0 * SEGMENTS_PER_SECOND, "the path would deliver a thousand times that");
    // Without losses it goes on.
    let mut bench = flow();
    bench.spacing = Span::from_us(1);
    bench.run_to(400);
    assert_eq!(state(&bench), State::Startup);
}

#[test]
fn startup_goes_on_where_the_application_limits_it() {
    // Five segments every 100 ms, for twenty seconds: no round tells how much the path holds.
    let mut bench = over_path(&config());
    (0..200).for_each(|k| {
        bench.write_at(100 * k, CLIENT, 5_000);
    });
    bench.run_to(19_000);
    assert_eq!((state(&bench), bbr(&bench).is_full()), (State::Startup, false));
    assert!(bbr(&bench).most_long().is_infinite());
}

// ── the cycle ──

#[test]
fn the_cycle_is_down_cruise_refill_up() {
    let mut bench = flow();
    until(&mut bench, State::Up);
    let (mut cycles, mut ups) = (0, vec![]);
    let mut peak = 0.0_f64;
    while bench.now < at_ms(30_000) {
        let was = state(&bench);
        let (began, mut most) = (bench.now, 0.0_f64);
        while state(&bench) == was {
            bench.step(Time::NEVER);
            most = most.max(out(&bench));
        }
        let (now, rounds) = (state(&bench), bench.now.since(began).secs_f64() / RTT.secs_f64());
        match was {
            _ if now == State::ProbeRtt => {}
            // Three rounds that bring no more. They are longer by the queue, which the window bounds: 2.25 paths.
            State::Up => {
                assert!(now == State::Down && (3.0..3.0 * 2.25).contains(&rounds), "{now:?} after {rounds}");
                ups.push(began);
                peak = peak.max(most);
            }
            // Until no more is out than the path holds: at 0.9 of the rate a tenth of a path a round trip.
            State::Down => {
                assert!(matches!(now, State::Cruise | State::Refill), "{now:?}");
                assert!(now == State::Refill || out(&bench) <= BDP.max(6.0) + 2.0, "{}", out(&bench));
            }
            State::Cruise => assert_eq!(now, State::Refill),
            State::Refill => assert!(now == State::Up && (0.9..1.6).contains(&rounds), "{now:?} after {rounds}"),
            State::ProbeRtt => assert_eq!(now, State::Cruise),
            State::Startup | State::Drain => panic!("{was:?} comes once"),
        }
        cycles += u32::from(was == State::Refill);
    }
    // The next probe comes after as many rounds as the path holds segments, 48, as Reno's would, or after two to three
    // seconds: here 48 rounds are 1.92 s. A look at the round trip, every five seconds, begins the wait anew.
    assert!((7..=14).contains(&cycles), "{cycles} cycles in 30 s");
    for pair in ups.windows(2) {
        let between = pair[1].since(pair[0]).secs_f64();
        assert!((1.9..4.4).contains(&between), "{between} s");
    }
    // A quarter more than is delivered for three rounds: 0.75 of a path more, within the window.
    assert!((1.5 * BDP..=2.25 * BDP + 8.0).contains(&peak), "{peak}");
    let rate = bbr(&bench).max_rate() / SEGMENTS_PER_SECOND;
    assert!((rate - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn the_round_trip_is_looked_for_every_five_seconds() {
    // A competitor's standing queue of 20 ms from the second second on: the shortest round trip is not seen again.
    let mut bench = flow();
    bench.run_to(2_000);
    bench.delay = RTT / 2 + Span::from_ms(10);
    let began = until(&mut bench, State::ProbeRtt);
    assert!(began.secs_f64() > 5.0 && began.secs_f64() < 8.0, "{began:?}");
    // Half of what the path holds.
    let half = (0.5 * BDP).floor();
    assert!((cwnd(&bench) - half).abs() <= 1.0, "{} for {half}", cwnd(&bench));
    let (after, lasted) = next(&mut bench);
    assert_eq!(after, State::Cruise);
    let round = 2.0 * bench.delay.secs_f64();
    assert!((0.2 + 0.25 * round..0.2 + 2.5 * round).contains(&lasted.secs_f64()), "{lasted:?}");
    assert!(cwnd(&bench) > BDP, "the window is what it was: {}", cwnd(&bench));
    let again = until(&mut bench, State::ProbeRtt).since(began).secs_f64();
    assert!((5.0..6.5).contains(&again), "{again} s");
}

#[test]
fn idleness_stands_for_a_look_at_the_round_trip() {
    let mut bench = over_path(&config());
    bench.write(CLIENT, 2_000_000);
    bench.run_to(2_500);
    assert_eq!(acknowledged(&bench), 2_000.0);
    // Seven seconds of nothing, and then more for a second.
    bench.write_at(9_500, CLIENT, 1_000_000);
    bench.run_to(9_500);
    while acknowledged(&bench) < 3_000.0 {
        bench.step(Time::NEVER);
        assert_ne!(state(&bench), State::ProbeRtt, "at {:?}", bench.now);
    }
}

// ── losses ──

#[test]
fn losses_of_a_probe_set_the_long_term_bound() {
    let mut bench = flow();
    let (on, off) = switch();
    let mut count = 0;
    bench.script(move |packet| {
        count += 1;
        if packet.kind == Kind::Data && on.get() && count % 8 == 0 { Fate::Lose } else { Fate::Pass }
    });
    // The next look at the round trip is five seconds away.
    until(&mut bench, State::ProbeRtt);
    until(&mut bench, State::Up);
    bench.run_to(bench.now.ns() / 1_000_000 + 40);
    assert_eq!(state(&bench), State::Up);
    off.set(true);
    let (after, took) = next(&mut bench);
    off.set(false);
    assert_eq!(after, State::Down, "after {took:?}");
    assert!(took < RTT * 3, "{took:?}: losses end it, not a plateau");
    // Not below 0.7 of what the path holds, nor above what was out.
    let bound = bbr(&bench).most_long();
    assert!((0.7 * BDP - 1.0..=2.25 * BDP + 4.0).contains(&bound), "{bound}");
    // 85 % of it are left to fill until the next probe, which ends when the bound is reached.
    until(&mut bench, State::Cruise);
    assert!(cwnd(&bench) <= bound - 0.15 * bound, "{} of {bound}", cwnd(&bench));
    until(&mut bench, State::Up);
    let (after, took) = next(&mut bench);
    assert_eq!(after, State::Down);
    assert!(took < RTT * 2, "{took:?}: a precaution");
    // Nothing was lost in it: the next probe follows at once.
    let (after, took) = next(&mut bench);
    assert_eq!(after, State::Refill);
    assert!(took < RTT * 3, "{took:?}");
}

#[test]
fn losses_between_probes_bring_rate_and_window_down_to_what_is_delivered() {
    let mut bench = flow();
    until(&mut bench, State::Cruise);
    // A tenth of the rate.
    bench.spacing = SPACING * 10;
    // The buffer holds thirty segments: what comes beyond is lost.
    bench.buffer = Some(30);
    let began = bench.now;
    bench.run_to(began.ns() / 1_000_000 + 16_000);
    // The cycle at hand and the next, each of up to three seconds, a few rounds of 30 segments at the new rate and
    // perhaps a look at the round trip: then the old rate is forgotten.
    let rate = bbr(&bench).max_rate() / SEGMENTS_PER_SECOND * 10.0;
    assert!((0.95..1.3).contains(&rate), "{rate} of the new rate");
    let before = acknowledged(&bench);
    bench.run_to(began.ns() / 1_000_000 + 26_000);
    let share = (acknowledged(&bench) - before) / 10.0 / SEGMENTS_PER_SECOND * 10.0;
    assert!((0.85..=1.0).contains(&share), "{share}");
}

#[test]
fn ten_times_the_rate_is_found_within_two_probes() {
    let mut bench = flow();
    until(&mut bench, State::Cruise);
    bench.spacing = Span::from_ns(SPACING.ns() / 10);
    let began = bench.now;
    while bbr(&bench).max_rate() < 9.0 * SEGMENTS_PER_SECOND {
        assert!(bench.step(Time::NEVER) && bench.now.since(began) < Span::from_secs(12), "{}", bbr(&bench).max_rate());
    }
    // A quarter more each round of a probe, as no bound holds it: ln 10 / ln 1.25 is 10 rounds and a few.
    assert!(bench.now.since(began) < Span::from_secs(6), "{:?}", bench.now.since(began));
}

#[test]
fn a_policer_is_lived_with() {
    // A bucket of 40 segments that fills at 600 a second: half of what comes through the bottleneck.
    let mut bench = flow();
    bench.script(common::policer(40.0, 600.0));
    bench.run_to(10_000);
    let (before, lost) = (acknowledged(&bench), bench.ends[CLIENT].stats().retransmitted);
    bench.run_to(30_000);
    let share = (acknowledged(&bench) - before) / 20.0 / 600.0;
    let lost = (bench.ends[CLIENT].stats().retransmitted - lost) as f64 / (20.0 * 600.0);
    assert!(share > 0.85 && lost < 0.1, "{share} of the tokens are used, {lost} of what is sent is lost");
}

#[test]
fn random_losses_below_the_threshold_are_borne() {
    // One in a hundred, half of the threshold.
    let mut bench = flow();
    let mut losses = Stream::named(1, "losses");
    bench.script(move |packet| match packet.kind {
        Kind::Data | Kind::Resent if losses.chance(0.01) => Fate::Lose,
        _ => Fate::Pass,
    });
    bench.run_to(3_000);
    let before = acknowledged(&bench);
    bench.run_to(63_000);
    let share = (acknowledged(&bench) - before) / 60.0 / SEGMENTS_PER_SECOND;
    // A round of 48 segments has a loss with 1 - 0.99^48 = 0.38, and takes the rate to what it delivered: 0.99 for the
    // margin, and one in 48 less. In the 48 rounds to the next probe this is e^-x, x = 48 x 0.38 x 0.031 = 0.57, and
    // (1 - e^-x) / x = 0.76 in their mean. Five rounds of 53 probe, at the whole rate, and looks at the round trip take
    // 2 %.
    assert!((share - 0.77).abs() < 0.05, "{share}");
    assert_eq!(bench.ends[CLIENT].stats().timeouts, 0);
}

#[test]
fn losses_that_were_none_are_taken_back() {
    let mut bench = flow();
    until(&mut bench, State::Cruise);
    // A dozen segments arrive 30 ms late, beyond what counts as reordering, once.
    let late = Rc::new(Cell::new(12));
    let left = late.clone();
    bench.script(move |packet| {
        if packet.kind == Kind::Data && left.get() > 0 {
            left.set(left.get() - 1);
            return Fate::Late(Span::from_ms(30));
        }
        Fate::Pass
    });
    let mut was_short = false;
    let end = bench.now + RTT * 8;
    while bench.now < end {
        bench.step(Time::NEVER);
        was_short |= bbr(&bench).short_term().1.is_finite();
    }
    assert_eq!(late.get(), 0);
    assert!(bench.ends[CLIENT].stats().retransmitted > 0, "they were deemed lost");
    assert!(was_short, "losses set a bound");
    assert_eq!(bbr(&bench).short_term(), (f64::INFINITY, f64::INFINITY), "and are not any more");
}

// ── marks ──

#[test]
fn marks_bring_the_window_down_by_a_third_of_their_share() {
    let mut bench = over_path(&Config { ecn: EcnMode::Accurate, ect: Ecn::Ect1, ..config() });
    bench.write(CLIENT, u64::MAX / 2);
    let (on, off) = switch();
    bench.script(move |packet| if packet.from == CLIENT && on.get() { Fate::Mark } else { Fate::Pass });
    until(&mut bench, State::Cruise);
    bench.run_to(bench.now.ns() / 1_000_000 + 80);
    assert_eq!(state(&bench), State::Cruise);
    let before = cwnd(&bench);
    off.set(true);
    // The average of the share began at 1 and came down by a sixteenth a round: some 15 rounds, and with the first
    // marks one up. A round of marks takes a third of it off.
    while bbr(&bench).short_term().1.is_infinite() {
        assert!(bench.step(Time::NEVER), "the flow goes on");
    }
    let kept = bbr(&bench).short_term().1 / before;
    assert!((1.0 - 1.0 / 3.0 - 0.05..0.99).contains(&kept), "{kept}");
    assert!(bbr(&bench).short_term().0.is_infinite(), "marks leave the rate alone");
    // Every segment is marked: with each round it comes down again, to four segments at last.
    bench.run_to(bench.now.ns() / 1_000_000 + 1_500);
    assert_eq!(bench.ends[CLIENT].stats().retransmitted, 0);
    assert!(cwnd(&bench) < 0.5 * before, "{} after {before}", cwnd(&bench));
    // When they cease it probes again, at once.
    off.set(false);
    let began = bench.now;
    let took = until(&mut bench, State::Refill).since(began);
    assert!(took < RTT * 4, "{took:?}");
}

#[test]
fn startup_ends_by_two_rounds_of_marks() {
    let mut bench = over_path(&Config { ecn: EcnMode::Accurate, ..config() });
    bench.spacing = Span::from_us(1);
    bench.write(CLIENT, u64::MAX / 2);
    bench.script(|packet| if packet.from == CLIENT && packet.at > at_ms(150) { Fate::Mark } else { Fate::Pass });
    let at = until(&mut bench, State::Drain);
    assert!(at > at_ms(150) + RTT * 2 && at < at_ms(150) + RTT * 5, "{at:?}");
    assert!(bbr(&bench).most_long().is_finite());
}

#[test]
fn an_echo_of_a_mark_is_as_a_loss_where_marks_are_not_counted() {
    let mut bench = over_path(&Config { ecn: EcnMode::On, ..config() });
    bench.write(CLIENT, u64::MAX / 2);
    let (on, off) = switch();
    bench.script(move |packet| if packet.from == CLIENT && on.take() { Fate::Mark } else { Fate::Pass });
    until(&mut bench, State::Cruise);
    bench.run_to(bench.now.ns() / 1_000_000 + 80);
    let before = cwnd(&bench);
    off.set(true);
    while bbr(&bench).short_term().0.is_infinite() {
        assert!(bench.step(Time::NEVER), "the flow goes on");
    }
    let (rate, most) = bbr(&bench).short_term();
    // Down to what was delivered, which is all that the path delivers, or by 0.7.
    assert!(rate <= bbr(&bench).max_rate() && rate > 0.69 * SEGMENTS_PER_SECOND, "{rate}");
    assert!(most < before && most > 0.69 * before, "{most} of {before}");
    assert_eq!(bench.ends[CLIENT].stats().retransmitted, 0);
}

#[test]
fn a_loss_that_a_probe_repaired_is_answered_as_any_other() {
    // "This applies generally: whether in fast recovery, RTO recovery, TLP recovery" (When not Probing for Bandwidth).
    let short_term = |loses: bool| {
        let mut bench = over_path(&Config { rto_min: Span::from_ms(200), rto_floor: RtoFloor::Variance, ..config() });
        bench.writes_down = true;
        // The tail of ten segments is probed for after two round trips and 200 ms. What follows is acknowledged beyond
        // the probe, which tells of the loss, and the bounds come down a round later.
        bench.write(CLIENT, 1_000_000);
        bench.write_at(1_300, CLIENT, 10_000).write_at(1_640, CLIENT, 10_000).write_at(1_700, CLIENT, 10_000);
        if loses {
            bench.lose(CLIENT, Kind::Data, &[1_010]);
        }
        bench.run_to(1_350);
        assert!(!matches!(state(&bench), State::Refill | State::Up), "{:?}", state(&bench));
        bench.run_to(1_800);
        let stats = bench.ends[CLIENT].stats();
        assert_eq!((stats.recoveries, stats.timeouts, stats.retransmitted), (0, 0, u32::from(loses)));
        bbr(&bench).short_term()
    };
    let (rate, volume) = short_term(true);
    assert!(rate.is_finite() && volume.is_finite(), "{rate} {volume}");
    assert_eq!(short_term(false), (f64::INFINITY, f64::INFINITY));
}
