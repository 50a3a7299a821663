//! What holds whatever the network does: every byte arrives once and in order, and every connection comes to its end.
//!
//! Overflow checks are on in tests: an account of what is outstanding that falls below zero panics.

use crate::common::{Bench, CLIENT, Fate, SERVER, delayed, plain, stack};
use base::{Span, Stream, Time};
use proptest::prelude::*;
use tcp::{Config, Control, CubicDialect, DelayedAck, EcnMode, EcnOption, Reduction, Repair, RttSampling};

/// How bad the network is, in both directions.
#[derive(Clone, Copy, Debug)]
struct Weather {
    seed: u64,
    loss: f64,
    mark: f64,
    late: f64,
    /// Longest extra delay, ms.
    late_ms: u64,
    /// Losses in a row, in one direction, at most.
    run: u32,
}

/// What the ends say to each other.
#[derive(Clone, Debug)]
struct Talk {
    /// Request and response of each exchange, bytes.
    exchanges: Vec<(u64, u64)>,
    /// Who stops reading when, and for how long, ms.
    pauses: Vec<(usize, u64, u64)>,
    /// Who closes after the last.
    closes: Closes,
}

#[derive(Clone, Copy, Debug)]
enum Closes {
    Client,
    Server,
    Both,
}

fn weather() -> impl Strategy<Value = Weather> {
    let rate = prop_oneof![Just(0.0), 0.001..0.05, 0.05..0.4_f64];
    (any::<u64>(), rate.clone(), rate.clone(), rate, 1..400_u64, 1..3_u32)
        .prop_map(|(seed, loss, mark, late, late_ms, run)| Weather { seed, loss, mark, late, late_ms, run })
}

fn talk() -> impl Strategy<Value = Talk> {
    let bytes = prop_oneof![1..1_000_u64, 1_000..20_000_u64, 20_000..150_000_u64];
    let closes = prop_oneof![Just(Closes::Client), Just(Closes::Server), Just(Closes::Both)];
    let pauses = prop::collection::vec((CLIENT..=SERVER, 0..2_000_u64, 1..3_000_u64), 0..4);
    (prop::collection::vec((bytes.clone(), bytes), 1..5), pauses, closes).prop_map(|(exchanges, pauses, closes)| Talk {
        exchanges,
        pauses,
        closes,
    })
}

fn config() -> impl Strategy<Value = Config> {
    let stacks = prop_oneof![Just("freebsd4"), Just("ns2"), Just("linux"), Just("plain"), Just("delayed")];
    let repairs = prop::sample::select(Repair::WORDS.map(|(_, repair)| repair).to_vec());
    let modes = prop_oneof![
        Just(EcnMode::Off),
        Just(EcnMode::On),
        Just(EcnMode::Plus),
        Just(EcnMode::PlusTryOnce),
        Just(EcnMode::Accurate)
    ];
    let controls = prop_oneof![
        Just(Control::Reno),
        Just(Control::Cubic),
        Just(Control::Dctcp),
        Just(Control::Bbr),
        Just(Control::Bbr3),
        Just(Control::Ledbat),
        Just(Control::Prague),
        Just(Control::PragueLinux)
    ];
    let samplings = prop_oneof![Just(RttSampling::EveryAck), Just(RttSampling::OnePerWindow)];
    let options = prop::sample::select(EcnOption::WORDS.map(|(_, option)| option).to_vec());
    let feedback = (modes, options, any::<bool>());
    (stacks, repairs, feedback, controls, samplings, any::<[bool; 7]>(), any::<[bool; 9]>()).prop_map(
        |(
            name,
            repair,
            (ecn, ecn_option, ect_on_all),
            control,
            rtt_sampling,
            [a, b, c, d, e, f, g],
            [h, j, k, l, m, n, o, p, q],
        )| {
            let base = match name {
                "plain" => plain(),
                "delayed" => delayed(),
                name => stack(name),
            };
            // A controller that models the path needs reports of what arrived, and so do counts of marks.
            let has_reports = matches!(repair, Repair::Sack | Repair::Rack);
            let repair =
                if (control.models_path() || ecn == EcnMode::Accurate) && !has_reports { Repair::Sack } else { repair };
            Config {
                repair,
                ecn,
                ecn_option,
                ect_on_all,
                control,
                rtt_sampling,
                limited_transmit: a,
                byte_counting: b,
                cwnd_validation: c,
                ect_on_retransmit: d,
                reduction: if f { Reduction::Proportional } else { Reduction::AtOnce },
                whole_segments: g,
                cubic: if g == h { CubicDialect::Linux } else { CubicDialect::Rfc },
                ecn_floor: if e { u32::from(a) } else { 2 },
                timestamps: j,
                dsack: k,
                frto: l,
                undo: m,
                idle_halves: n,
                ecn_fallback: o,
                pacing: q,
                delayed_ack: DelayedAck { adapts: p, ..base.delayed_ack },
                handshake: name != "ns2" || d,
                ..base
            }
        },
    )
}

impl Weather {
    fn over(self, bench: &mut Bench) {
        let mut stream = Stream::named(self.seed, "weather");
        let mut row = [0; 2];
        bench.script(move |packet| {
            let unit = stream.unit();
            let is_lost = unit < self.loss && row[packet.from] < self.run;
            row[packet.from] = if is_lost { row[packet.from] + 1 } else { 0 };
            if is_lost {
                Fate::Lose
            } else if stream.chance(self.mark) {
                Fate::Mark
            } else if stream.chance(self.late) {
                Fate::Late(Span::from_ms(1 + stream.below(self.late_ms)))
            } else {
                Fate::Pass
            }
        });
    }
}

/// A bench with all that is to be said on it; what each end writes in all.
fn bench(config: &Config, weather: Weather, talk: &Talk) -> (Bench, [u64; 2]) {
    let mut bench = Bench::new(config);
    weather.over(&mut bench);
    for &(end, from, long) in &talk.pauses {
        bench.hold_at(from, end).resume_at(from + long, end);
    }
    let mut asked = 0;
    let mut answered = 0;
    for (number, &(request, response)) in talk.exchanges.iter().enumerate() {
        let is_last = number + 1 == talk.exchanges.len();
        let client_closes = is_last && !matches!(talk.closes, Closes::Server);
        let server_closes = is_last && !matches!(talk.closes, Closes::Client);
        bench.answer(CLIENT, answered, request, client_closes);
        asked += request;
        bench.answer(SERVER, asked, response, server_closes);
        answered += response;
    }
    (bench, [asked, answered])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_the_connection_ends(config in config(), weather in weather(), talk in talk()) {
        let (mut bench, written) = bench(&config, weather, &talk);
        let (mut received, mut acknowledged) = ([0; 2], [0; 2]);
        let mut steps = 0;
        while bench.step(Time::NEVER) {
            for end in [CLIENT, SERVER] {
                let (now, acked) = (bench.ends[end].received(), bench.ends[end].acknowledged());
                prop_assert!(now >= received[end] && now <= written[1 - end], "in order, and nothing twice");
                prop_assert!(acked >= acknowledged[end], "what is acknowledged stays so");
                let arrived = bench.ends[1 - end].received() + bench.ends[1 - end].unread();
                prop_assert!(acked <= arrived, "only what arrived is acknowledged");
                let has_room = bench.ends[end].cwnd() >= f64::from(config.mss) * 0.999;
                let is_waiting = config.repair.is_of_ns2() && bench.ends[end].next_wake().is_set();
                let is_through = acked == written[end];
                let may_send = has_room || is_waiting || is_through;
                prop_assert!(may_send, "a segment may always be sent, or will be when the timer expires");
                (received[end], acknowledged[end]) = (now, acked);
            }
            steps += 1;
            prop_assert!(steps < 1_000_000, "it comes to an end");
        }
        bench.assert_complete(written[CLIENT], written[SERVER]);
        for packet in &bench.story {
            let segment = &packet.segment;
            prop_assert!(u32::from(segment.payload) <= config.mss);
            prop_assert!(segment.ecn == base::Ecn::NotEct || config.ecn != EcnMode::Off);
        }
    }

    #[test]
    fn a_connection_that_is_cut_is_given_up(config in config(), talk in talk(), cut in 0..400_usize) {
        let calm = Weather { seed: 1, loss: 0.0, mark: 0.0, late: 0.0, late_ms: 1, run: 1 };
        let (mut bench, written) = bench(&config, calm, &talk);
        let mut sent = 0;
        bench.script(move |_| {
            sent += 1;
            if sent > cut { Fate::Lose } else { Fate::Pass }
        });
        bench.run();
        // Whoever had something to say or a FIN to be acknowledged gave up; nobody waits for ever with a timer.
        for end in [CLIENT, SERVER] {
            let endpoint = &bench.ends[end];
            prop_assert!(!endpoint.next_wake().is_set());
            let has_all = endpoint.acknowledged() == written[end] && endpoint.is_done();
            let said_nothing = !endpoint.is_established() || endpoint.stats().segments == 0;
            let is_waiting = endpoint.acknowledged() > 0 || said_nothing;
            prop_assert!(endpoint.is_aborted() || has_all || is_waiting);
        }
    }
}
