//! The AccECN option against a second writing of RFC 9768 §3.2.3, from its text alone: what a receiver tells of any
//! data, when it tells it, and what a sender makes of what is left of that.

use crate::common::{Bench, CLIENT, Fate, Kind, Packet, SERVER, at_ms, delayed, plain};
use base::{Ecn, Span, Stream, Time};
use proptest::prelude::*;
use tcp::{ByteCounts, Config, Control, EcnMode, EcnOption, Emit, Endpoint, Flags, Order, Repair, SackBlocks, Segment};

/// Hosts without a handshake that have the option.
fn hosts(base: Config) -> Config {
    let (ecn, repair) = (EcnMode::Accurate, Repair::Sack);
    Config { ecn, ecn_option: EcnOption::Rfc, timestamps: true, header: 52, dsack: true, ecn_floor: 2, repair, ..base }
}

/// §3.2.1 and §3.2.3: counters of payload bytes by field, modulo 2^24, that begin with 1, 0 and 1.
#[derive(Default)]
struct Counters {
    ect0: u64,
    ce: u64,
    ect1: u64,
    /// The field of the last bytes that were counted, and the last that was no mark.
    last: Option<Ecn>,
    last_ect: Option<Ecn>,
}

impl Counters {
    /// Takes data. Returns whether it added to another counter than the data before (§3.2.3.3, change-triggered).
    fn take(&mut self, segment: &Segment) -> bool {
        let counter = match segment.ecn {
            Ecn::NotEct => return false,
            Ecn::Ect0 => &mut self.ect0,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ce => &mut self.ce,
        };
        *counter += u64::from(segment.payload);
        if segment.ecn != Ecn::Ce {
            self.last_ect = Some(segment.ecn);
        }
        self.last.replace(segment.ecn).is_some_and(|last| last != segment.ecn)
    }

    /// The fields of an option of so many counters (figures 4 and 5).
    fn option(&self, len: usize) -> (Order, Vec<u32>) {
        let fields = [1 + self.ect0, self.ce, 1 + self.ect1].map(|counter| (counter & 0xff_ffff) as u32);
        let [ect0, ce, ect1] = fields;
        match self.last_ect {
            Some(Ecn::Ect1) => (Order::Ect1First, [ect1, ce, ect0][..len].to_vec()),
            _ => (Order::Ect0First, [ect0, ce, ect1][..len].to_vec()),
        }
    }
}

#[derive(Default)]
struct Sent(Vec<Segment>);

impl Emit for Sent {
    fn emit(&mut self, segment: Segment) {
        self.0.push(segment);
    }
}

/// Data for a receiver: which segment, how large, with which field, and how long after the one before, in us.
fn data() -> impl Strategy<Value = Vec<(u64, u16, Ecn, u64)>> {
    let field = prop_oneof![1 => Just(Ecn::NotEct), 4 => Just(Ecn::Ect0), 4 => Just(Ecn::Ect1), 3 => Just(Ecn::Ce)];
    // One of the next nine segments, so that there are holes and repetitions.
    prop::collection::vec((0..9_u64, 1..=1_000_u16, field, 0..3_000_u64), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes in whatever order: every acknowledgement has the option that the text asks for, and one comes at
    /// once where the bytes of another field begin. A receiver without a round trip of its own sends one each time.
    #[test]
    fn a_receiver_tells_what_it_got(steps in data(), is_delayed: bool) {
        let config = hosts(if is_delayed { delayed() } else { plain() });
        let mut end = Endpoint::new(&config);
        end.listen(&config);
        let (mut mirror, mut now, mut next) = (Counters::default(), at_ms(1), 0);
        for (ahead, payload, ecn, after) in steps {
            now += Span::from_us(after);
            let mut sent = Sent::default();
            if end.next_wake() <= now {
                end.on_wake(&config, now, &mut sent);
            }
            check(&sent, &mirror, &config)?;
            let segment = Segment { seq: 1 + 1_000 * (next + ahead), payload, ecn, ..bare(now) };
            let mut sent = Sent::default();
            // §3.2: what is not acceptable is not counted (RFC 9293 §3.10.7.4), and all of this was here before.
            let is_old = segment.end() <= 1 + end.received();
            let changes = !is_old && mirror.take(&segment);
            end.on_segment(&segment, &config, now, &mut sent);
            prop_assert!(!changes || !sent.0.is_empty(), "a change of field is acknowledged at once");
            check(&sent, &mirror, &config)?;
            next += u64::from(ahead < 2);
        }
        prop_assert_eq!(end.marked_bytes_received(), Some(mirror.ce));
    }
}

/// A segment of an open connection that says nothing.
fn bare(now: Time) -> Segment {
    let stamp = (now.ns() / 1_000_000) as u16;
    Segment {
        seq: 1,
        ack: 1,
        sacks: SackBlocks::default(),
        window: 1 << 20,
        stamp,
        echo: 0,
        payload: 0,
        size: 1_052,
        flags: Flags::ACK.with(Flags::of_ace(5)),
        ecn: Ecn::NotEct,
    }
}

/// Every acknowledgement has the option, as far as reports of losses leave room for it (§3.2.3.3): 40 bytes of options,
/// 12 of which are timestamps. A report of n blocks takes 4 + 8n, and an option 2 + 3 for each counter, in words.
fn check(sent: &Sent, mirror: &Counters, config: &Config) -> Result<(), TestCaseError> {
    for ack in &sent.0 {
        let report = ack.sacks.option_bytes();
        let room = 40 - 12 - report;
        let len = match (12_u32.cmp(&room), 8_u32.cmp(&room)) {
            (std::cmp::Ordering::Greater, std::cmp::Ordering::Greater) => None,
            (std::cmp::Ordering::Greater, _) => Some(2),
            _ => Some(3),
        };
        let found = ack.byte_counts().map(|option| (option.order, option.counters().to_vec()));
        prop_assert_eq!(&found, &len.map(|len| mirror.option(len)));
        let option = if len.is_none() {
            0
        } else if len == Some(2) {
            8
        } else {
            12
        };
        prop_assert_eq!(u32::from(ack.size), config.header + report + option);
    }
    Ok(())
}

/// A counter goes round at 2^24, and a sender reads on: 20 MB with every field in turn, all of it marked later.
#[test]
fn counters_go_round() {
    let config = Config { window: 1 << 40, ..hosts(plain()) };
    let mut bench = Bench::new(&config);
    bench.writes_down = false;
    bench.script(|packet| match packet.kind {
        Kind::Data if packet.number % 7 != 3 => Fate::Mark,
        _ => Fate::Pass,
    });
    bench.write(CLIENT, 20_000_000).close(CLIENT).run();
    let received = bench.ends[SERVER].marked_bytes_received();
    assert!(received > Some(1 << 24), "{received:?}");
    assert_eq!(bench.ends[CLIENT].marked_bytes_heard(), received);
    assert_eq!(bench.ends[CLIENT].marks_heard(), bench.ends[SERVER].marks_received());
}

/// A server that was asked tells its counters in the SYN/ACK, and a client in the acknowledgement of that; a SYN has no
/// option (§3.2.3.2.1).
#[test]
fn the_handshake_shows_that_options_pass() {
    let config = Config { handshake: true, ecn_fallback: true, syn_header: 60, ..hosts(plain()) };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 3_000).close(CLIENT).run();
    let first = |kind| *bench.packets(if kind == Kind::SynAck { SERVER } else { CLIENT }, kind).next().expect("sent");
    let full = Some(ByteCounts::new(Order::Ect0First, [1, 0, 1], 3));
    assert_eq!([Kind::Syn, Kind::SynAck, Kind::Ack].map(|kind| first(kind).segment.byte_counts()), [None, full, full]);
    assert_eq!([Kind::Syn, Kind::SynAck, Kind::Ack].map(|kind| first(kind).segment.size), [60, 72, 64]);
    bench.assert_complete(3_000, 0);

    // §3.2.3.2.2: a SYN/ACK that is sent again goes without, and so does all that follows.
    let mut bench = Bench::new(&config);
    bench.lose(SERVER, Kind::SynAck, &[1]).write(CLIENT, 9_000).close(CLIENT).run();
    let of_server = bench.story.iter().filter(|packet| packet.from == SERVER).skip(1);
    assert!(of_server.clone().count() > 3 && of_server.clone().all(|packet| packet.segment.byte_counts().is_none()));
    // Without them the bits count on.
    assert!(bench.ends[CLIENT].marks_heard().is_some());
    bench.assert_complete(9_000, 0);

    // A client that did not ask for accurate feedback is told nothing of bytes.
    let classic = Config { ecn: EcnMode::On, ecn_option: EcnOption::Off, ..config.clone() };
    let mut bench = Bench::of(&classic, &config);
    bench.write(CLIENT, 3_000).close(CLIENT).run();
    assert!(bench.story.iter().all(|packet| packet.segment.byte_counts().is_none()));
}

/// Somebody on the way zeroes the counters (§3.2.3.2.4), or strips the option: the bits are what is left.
#[test]
fn a_sender_goes_on_without_options() {
    for fate in [Fate::ZeroedOption, Fate::NoOption] {
        let config = Config { handshake: true, ..hosts(plain()) };
        let mut bench = Bench::new(&config);
        bench.script(move |packet| match packet.kind {
            Kind::Data if packet.number % 3 == 0 => Fate::Mark,
            _ if packet.from == SERVER => fate,
            _ => Fate::Pass,
        });
        bench.write(CLIENT, 90_000).close(CLIENT).run();
        assert_eq!(bench.ends[CLIENT].marks_heard(), bench.ends[SERVER].marks_received());
        // By full segments, which all of these are.
        assert_eq!(bench.ends[CLIENT].marked_bytes_heard(), bench.ends[SERVER].marked_bytes_received());
        assert!(bench.ends[SERVER].marked_bytes_received() > Some(0));
        bench.assert_complete(90_000, 0);
    }
}

/// A long transfer without marks: a full option at least three times a round trip (§3.2.3.3), and by far not on every
/// acknowledgement.
#[test]
fn options_are_a_beacon() {
    let config = Config { handshake: true, initial_window: 40, control: Control::Cubic, ..hosts(plain()) };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(2);
    bench.write(CLIENT, 2_000_000).close(CLIENT).run();
    let acks: Vec<&Packet> = bench.packets(SERVER, Kind::Ack).collect();
    let full = |packet: &&&Packet| packet.segment.byte_counts().is_some_and(|option| option.counters().len() == 3);
    let with: Vec<u64> = acks.iter().filter(full).map(|packet| packet.at.ns()).collect();
    // A round trip is 100 ms at least; the queue before the link makes it longer.
    let rtt_ns = 100_000_000;
    let begin = with[0];
    let end = acks.last().expect("acknowledgements").at.ns() - rtt_ns;
    for from in (begin..end).step_by(1_000_000) {
        let within = with.iter().filter(|&&at| (from..from + rtt_ns).contains(&at)).count();
        assert!(within >= 3, "{within} options in the round trip from {from} ns on");
    }
    assert!(with.len() * 5 < acks.len(), "{} of {}", with.len(), acks.len());
}

/// Twenty segments, no acknowledgement but the last: three bits cannot tell 2 marks from 10 and 18, bytes can.
#[test]
fn bytes_tell_how_often_three_bits_went_round() {
    for marked in [2_usize, 10, 18] {
        let config = Config { initial_window: 20, ..hosts(plain()) };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &(1..=marked).collect::<Vec<_>>());
        bench.lose(SERVER, Kind::Ack, &(1..20).collect::<Vec<_>>()).run();
        assert_eq!(bench.ends[CLIENT].marks_heard(), Some(marked as u32));
        assert_eq!(bench.ends[CLIENT].marked_bytes_heard(), Some(1_000 * marked as u64));
    }
}

/// What may become of packets.
#[derive(Clone, Copy, Debug)]
struct Path {
    seed: u64,
    mark: f64,
    loss: f64,
    thinned: f64,
    stripped: f64,
}

fn transfer(config: &Config, bytes: u64, path: Path) -> Bench {
    let mut bench = Bench::new(config);
    bench.spacing = Span::from_us(1_100);
    let mut stream = Stream::named(path.seed, "path");
    bench.script(move |packet| match packet.from {
        SERVER if stream.chance(path.thinned) => Fate::Lose,
        SERVER if stream.chance(path.stripped) => Fate::NoOption,
        SERVER => Fate::Pass,
        _ if stream.chance(path.loss) => Fate::Lose,
        _ if stream.chance(path.mark) => Fate::Mark,
        _ => Fate::Pass,
    });
    bench.write(CLIENT, bytes).close(CLIENT).run();
    bench
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// However many acknowledgements are lost, a sender knows in the end how many bytes came marked, and has answered
    /// for no packet more than three bits alone would have it.
    #[test]
    fn a_sender_hears_of_every_marked_byte(
        seed: u64, bytes in 1..300_000_u64, mark in 0.0..1.0_f64, is_delayed: bool,
        loss in prop_oneof![Just(0.0), 0.0..0.1], thinned in 0.0..0.9_f64,
    ) {
        let config = hosts(if is_delayed { delayed() } else { plain() });
        let path = Path { seed, mark, loss, thinned, stripped: 0.0 };
        let bench = transfer(&config, bytes, path);
        prop_assume!(!bench.ends[CLIENT].is_aborted());
        prop_assert_eq!(bench.ends[CLIENT].marked_bytes_heard(), bench.ends[SERVER].marked_bytes_received());
        let heard = bench.ends[CLIENT].marks_heard().expect("it counts");
        let seen = bench.ends[SERVER].marks_received().expect("it counts");
        prop_assert!(heard.abs_diff(seen).is_multiple_of(8), "{} of {}", heard, seen);
    }

    /// Where some options are stripped, no marked byte is overlooked.
    #[test]
    fn no_marked_byte_is_overlooked(
        seed: u64, bytes in 1..300_000_u64, mark in 0.0..1.0_f64, thinned in 0.0..0.8_f64, stripped in 0.0..1.0_f64,
    ) {
        let config = hosts(plain());
        let path = Path { seed, mark, loss: 0.0, thinned, stripped };
        let bench = transfer(&config, bytes, path);
        prop_assume!(!bench.ends[CLIENT].is_aborted());
        prop_assert!(bench.ends[CLIENT].marked_bytes_heard() >= bench.ends[SERVER].marked_bytes_received());
    }

    /// By Linux's rules bytes decide how often three bits went round, and do so from estimates where some options are
    /// stripped: what is heard too much or too little is whole rounds.
    #[test]
    fn linux_errs_by_whole_rounds(
        seed: u64, bytes in 1..300_000_u64, mark in 0.0..1.0_f64, loss in prop_oneof![Just(0.0), 0.0..0.1],
        thinned in 0.0..0.9_f64, stripped in prop_oneof![Just(0.0), 0.0..1.0], is_minimum: bool,
    ) {
        let ecn_option = if is_minimum { EcnOption::LinuxMinimum } else { EcnOption::Linux };
        let config = Config { ecn_option, ..hosts(plain()) };
        let bench = transfer(&config, bytes, Path { seed, mark, loss, thinned, stripped });
        prop_assume!(!bench.ends[CLIENT].is_aborted());
        let heard = bench.ends[CLIENT].marks_heard().expect("it counts");
        let seen = bench.ends[SERVER].marks_received().expect("it counts");
        prop_assert!(heard.abs_diff(seen).is_multiple_of(8), "{} of {}", heard, seen);
    }
}
