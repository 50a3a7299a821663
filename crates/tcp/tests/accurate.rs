//! Accurate ECN against a second writing of RFC 9768, from its text alone: Tables 2, 3 and 4 over all values of the
//! bits and of the ECN field, and what a sender has heard against what the receiver has seen, whatever becomes of the
//! packets.

use crate::common::{Bench, CLIENT, Fate, Kind, Packet, SERVER, delayed, plain};
use base::{Ecn, Span, Stream};
use proptest::prelude::*;
use tcp::{Config, Control, DelayedAck, EcnMode, EcnOption, Flags, Repair, Segment};

const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

/// AE, CWR and ECE as one number (figure 2 of the RFC).
fn bits(segment: &Segment) -> u32 {
    [(Flags::AE, 4), (Flags::CWR, 2), (Flags::ECE, 1)]
        .into_iter()
        .map(|(flag, value)| if segment.flags.has(flag) { value } else { 0 })
        .sum()
}

/// Hosts with a handshake that do this about ECN.
fn hosts(ecn: EcnMode) -> Config {
    Config {
        ecn,
        handshake: true,
        repair: Repair::Sack,
        dsack: true,
        initial_window: 10,
        ecn_fallback: true,
        ..plain()
    }
}

/// Tables 2 and 3: how the field of a packet of the handshake is fed back.
fn fed_back(field: Ecn) -> u32 {
    match field {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The first packet of a kind.
fn first(bench: &Bench, from: usize, kind: Kind) -> &Packet {
    bench.packets(from, kind).next().expect("it was sent")
}

/// What the feedback of a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    NotEcn,
    Classic,
    Accurate,
}

/// What a server enters that does `ecn`, by the bits of the first SYN: Table 2, §3.1.3 and RFC 3168 §6.1.1.
fn mode_of_server(ecn: EcnMode, syn: u32) -> Mode {
    match (ecn, syn) {
        (EcnMode::Off, _) | (_, 0b000) => Mode::NotEcn,
        (EcnMode::Accurate, 0b011) => Mode::Classic,
        (EcnMode::Accurate, _) => Mode::Accurate,
        // Bit 7 was reserved, or the nonce's.
        (_, syn) if syn & 0b011 == 0b011 => Mode::Classic,
        _ => Mode::NotEcn,
    }
}

#[test]
fn a_server_answers_every_syn_as_table_2_says() {
    for ecn in [EcnMode::Off, EcnMode::On, EcnMode::Accurate] {
        for syn in 0..8 {
            let mut bench = Bench::of(&hosts(EcnMode::Accurate), &hosts(ecn));
            bench.script(move |packet| if packet.kind == Kind::Syn { Fate::Bits(syn) } else { Fate::Pass });
            bench.write(CLIENT, 500).run_to(60);
            let mode = mode_of_server(ecn, syn);
            let expected = match mode {
                Mode::NotEcn => 0b000,
                Mode::Classic => 0b001,
                Mode::Accurate => fed_back(Ecn::NotEct),
            };
            let case = format!("{ecn:?} {syn:03b}");
            assert_eq!(bits(&first(&bench, SERVER, Kind::SynAck).segment), expected, "{case}");
            assert_eq!(bench.ends[SERVER].marks_received().is_some(), mode == Mode::Accurate, "{case}");
        }
    }
}

#[test]
fn a_server_feeds_back_the_field_of_the_latest_syn() {
    for field in FIELDS {
        let mut bench = Bench::new(&hosts(EcnMode::Accurate));
        bench.script(move |packet| if packet.kind == Kind::Syn { Fate::Field(field) } else { Fate::Pass });
        bench.write(CLIENT, 500).answer(SERVER, 500, 3_000, true).run();
        assert_eq!(bits(&first(&bench, SERVER, Kind::SynAck).segment), fed_back(field));
        // §3.2.2.2: a mark on the SYN is in no counter.
        let counts = bench.ends.each_ref().map(|end| (end.marks_received(), end.marks_heard()));
        assert_eq!(counts, [(Some(0), Some(0)); 2]);
        // §3.2.2.3: the SYN was sent as Not-ECT, and any other field is a change that no router makes. The client goes
        // on without ECT; the server does not know of it.
        let may = field == Ecn::NotEct;
        assert!(bench.packets(CLIENT, Kind::Data).all(|packet| packet.segment.ecn.is_ect() == may));
        assert!(bench.packets(SERVER, Kind::Data).all(|packet| packet.segment.ecn.is_ect()));
        // It answers the mark all the same.
        assert_eq!(bench.ends[CLIENT].stats().ecn_reductions, u32::from(field == Ecn::Ce));
        bench.assert_complete(500, 3_000);
    }
}

#[test]
fn a_client_takes_from_every_syn_ack_what_table_2_says() {
    for synack in 0..8 {
        let mode = match synack {
            // No ECN, and the server that merely reflects.
            0b000 | 0b111 => Mode::NotEcn,
            0b001 => Mode::Classic,
            // 101 is reserved: accurate, and the SYN arrived as it was (§3.1.3).
            _ => Mode::Accurate,
        };
        let mut bench = Bench::new(&hosts(EcnMode::Accurate));
        bench.script(move |packet| if packet.kind == Kind::SynAck { Fate::Bits(synack) } else { Fate::Pass });
        bench.write(CLIENT, 5_000).run_to(99);
        bench.run_to(149);
        let case = format!("{synack:03b}");
        let ack = &first(&bench, CLIENT, Kind::Ack).segment;
        // Table 3: the SYN/ACK came as Not-ECT.
        assert_eq!(bits(ack), if mode == Mode::Accurate { 0b010 } else { 0 }, "{case}");
        assert_eq!(bench.ends[CLIENT].marks_received().is_some(), mode == Mode::Accurate, "{case}");
        // The SYN went as Not-ECT: what the SYN/ACK says of it may show that a field was changed.
        let is_changed = mode == Mode::Accurate && !matches!(synack, 0b010 | 0b101);
        for packet in bench.packets(CLIENT, Kind::Data) {
            assert_eq!(packet.segment.ecn.is_ect(), mode != Mode::NotEcn && !is_changed, "{case}");
            let expected = if mode == Mode::Accurate { 5 } else { 0 };
            assert_eq!(bits(&packet.segment), expected, "{case}");
        }
    }
}

#[test]
fn a_server_takes_from_every_first_acknowledgement_what_table_4_says() {
    for ack in 0..8 {
        // SYN/ACKs that are ECN-capable, and others.
        for is_capable in [false, true] {
            let config = Config { ect_on_control: is_capable, ..hosts(EcnMode::Accurate) };
            let mut bench = Bench::new(&config);
            bench.script(move |packet| match (packet.from, packet.kind, packet.number) {
                (CLIENT, Kind::Ack, 1) => Fate::Bits(ack),
                _ => Fate::Pass,
            });
            bench.answer(SERVER, 0, 3_000, true).run_to(151);
            let case = format!("{ack:03b} {is_capable}");
            let heard = match ack {
                0b000 => None,
                0b110 => Some(1),
                _ => Some(0),
            };
            assert_eq!(bench.ends[SERVER].marks_heard(), heard, "{case}");
            // As a receiver it goes on.
            assert_eq!(bench.ends[SERVER].marks_received(), Some(0), "{case}");
            let may = match ack {
                // Note 1.
                0b000 => false,
                // Unused: nothing is inferred (note 2).
                0b001 | 0b101 | 0b111 => true,
                0b010 => !is_capable,
                // One ECT for the other, or a mark.
                _ => is_capable,
            };
            assert!(bench.packets(SERVER, Kind::Data).all(|packet| packet.segment.ecn.is_ect() == may), "{case}");
            // Table 4, 110: a mark, which is answered.
            let window = if ack == 0b110 { 1 } else { 3 };
            assert_eq!(bench.packets(SERVER, Kind::Data).count(), window, "{case}");
        }
    }
}

#[test]
fn a_marked_syn_ack_is_counted_once() {
    let config = Config { ect_on_control: true, ..hosts(EcnMode::Accurate) };
    let mut bench = Bench::new(&config);
    bench.mark(SERVER, Kind::SynAck, &[1]).write(CLIENT, 3_000).close(CLIENT).run();
    assert_eq!(bits(&first(&bench, CLIENT, Kind::Ack).segment), 0b110);
    assert_eq!(bits(&first(&bench, CLIENT, Kind::Data).segment), 6);
    assert_eq!((bench.ends[CLIENT].marks_received(), bench.ends[SERVER].marks_heard()), (Some(1), Some(1)));
    // §3.2.2.1: the acknowledgement of a second one says how that came; the counter has counted the first alone.
    let mut bench = Bench::new(&config);
    bench.mark(SERVER, Kind::SynAck, &[1, 2]).lose(CLIENT, Kind::Ack, &[1]).run();
    let acks: Vec<_> = bench.packets(CLIENT, Kind::Ack).map(|packet| bits(&packet.segment)).collect();
    assert_eq!(acks, [0b110, 0b110]);
    assert_eq!((bench.ends[CLIENT].marks_received(), bench.ends[SERVER].marks_heard()), (Some(1), Some(1)));
}

#[test]
fn syns_ask_twice_and_syn_acks_agree_twice() {
    // §3.1.4.1
    let mut bench = Bench::new(&hosts(EcnMode::Accurate));
    bench.lose(CLIENT, Kind::Syn, &[1, 2]).write(CLIENT, 3_000).close(CLIENT).run();
    let syns: Vec<_> = bench.packets(CLIENT, Kind::Syn).map(|packet| bits(&packet.segment)).collect();
    assert_eq!(syns, [0b111, 0b111, 0b000]);
    assert!(bench.ends.iter().all(|end| end.marks_heard().is_none()));
    assert!(bench.story.iter().all(|packet| !packet.segment.ecn.is_ect()));
    // §3.2.3.2.2: the third SYN/ACK, and here the third SYN too. The client takes it for a server without ECN, the
    // server remains what it was, and sends nothing ECN-capable (§3.1.5).
    let mut bench = Bench::new(&hosts(EcnMode::Accurate));
    bench.lose(SERVER, Kind::SynAck, &[1, 2]).write(CLIENT, 3_000).answer(SERVER, 3_000, 3_000, true).run();
    let synacks: Vec<_> = bench.packets(SERVER, Kind::SynAck).map(|packet| bits(&packet.segment)).collect();
    assert_eq!(synacks[..3], [0b010, 0b010, 0b000]);
    assert_eq!((bench.ends[CLIENT].marks_received(), bench.ends[SERVER].marks_received()), (None, Some(0)));
    assert!(bench.story.iter().all(|packet| !packet.segment.ecn.is_ect()));
    bench.assert_complete(3_000, 3_000);
}

#[test]
fn acknowledgements_count_and_say_at_once() {
    // Ten segments, one a millisecond; 4, 5 and 6 marked, and 9. An acknowledgement for every second; §3.2.2.5.1: at
    // once where marks begin, and with every second mark.
    let config = Config { ecn: EcnMode::Accurate, repair: Repair::Sack, initial_window: 10, ..delayed() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[4, 5, 6, 9]).run();
    let acks: Vec<_> = bench
        .packets(SERVER, Kind::Ack)
        .map(|packet| ((packet.segment.ack - 1) / 1_000, bits(&packet.segment)))
        .collect();
    // 5 + 1 with segment 4, 5 + 3 = 8 with segment 6, 5 + 4 = 9 with segment 9.
    assert_eq!(acks, [(2, 5), (4, 6), (6, 0), (8, 0), (9, 1), (10, 1)]);
    assert_eq!((bench.ends[CLIENT].marks_heard(), bench.ends[CLIENT].stats().ecn_reductions), (Some(4), 1));
    // Nobody says CWR: its bit counts.
    assert!(bench.packets(CLIENT, Kind::Data).all(|packet| bits(&packet.segment) == 5));
}

#[test]
fn linux_acknowledges_every_change_at_once() {
    let delayed_ack = DelayedAck { hurries_for_ecn: true, ..delayed().delayed_ack };
    let config = Config { ecn: EcnMode::Accurate, repair: Repair::Sack, initial_window: 10, delayed_ack, ..delayed() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[4]).run();
    // The first is ECT(0) after nothing; 4 begins a mark, 5 ends it.
    let numbers: Vec<_> = bench.acks(SERVER).iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers, [1, 3, 4, 5, 7, 9, 10]);
}

#[test]
fn acknowledgements_of_marked_acknowledgements_come_with_every_third() {
    // §3.2.2.5.1: all of the server's acknowledgements are marked, and the client has nothing more to say.
    let config = Config {
        ecn: EcnMode::Accurate,
        repair: Repair::Sack,
        ect_on_control: true,
        timestamps: true,
        initial_window: 9,
        ..plain()
    };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 9_000);
    bench.script(|packet| if packet.from == SERVER { Fate::Mark } else { Fate::Pass });
    bench.run();
    let acks: Vec<_> = bench.packets(CLIENT, Kind::Ack).map(|packet| bits(&packet.segment)).collect();
    // 5 + 3, 5 + 6, 5 + 9, modulo eight.
    assert_eq!(acks, [0, 3, 6]);
    assert_eq!((bench.ends[CLIENT].marks_received(), bench.ends[SERVER].marks_heard()), (Some(9), Some(9)));
}

#[test]
fn a_run_of_lost_acknowledgements_is_taken_for_the_worst() {
    // Appendix A.2: 20 segments, no acknowledgement but the last. With 2 marks the field says 2, which may be 10 or 18:
    // the safest is 18.
    let config = Config { ecn: EcnMode::Accurate, repair: Repair::Sack, initial_window: 20, ..plain() };
    let mut bench = Bench::new(&config);
    bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &[3, 7]);
    bench.lose(SERVER, Kind::Ack, &(1..20).collect::<Vec<_>>()).run();
    assert_eq!((bench.ends[SERVER].marks_received(), bench.ends[CLIENT].marks_heard()), (Some(2), Some(18)));
}

/// By Linux's rule that is so only where acknowledgements do not usually cover more than four segments.
#[test]
fn linux_takes_a_run_of_lost_acknowledgements_for_what_is_usual() {
    let of = |lost: &[usize], ecn_option, ect_on_all| {
        let (ecn, repair) = (EcnMode::Accurate, Repair::Sack);
        // Linux sends no option before it has seen one.
        let handshake = ecn_option == EcnOption::Linux;
        let config = Config { ecn, repair, ecn_option, ect_on_all, handshake, initial_window: 20, ..plain() };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 20_000).mark(CLIENT, Kind::Data, &[3, 7]);
        bench.lose(SERVER, Kind::Ack, lost).run();
        bench.ends[CLIENT].marks_heard()
    };
    let (all_but_the_last, all_between): (Vec<_>, Vec<_>) = ((1..20).collect(), (2..20).collect());
    assert_eq!(of(&all_but_the_last, EcnOption::Off, true), Some(2));
    assert_eq!(of(&all_between, EcnOption::Off, true), Some(18));
    // Hosts that are like Linux in nothing else, and such with the RFC's option.
    assert_eq!(of(&all_but_the_last, EcnOption::Off, false), Some(18));
    // The option tells that two were marked, once it was foreseen that one is.
    assert_eq!(of(&all_between, EcnOption::Linux, false), Some(2));
    assert_eq!(of(&all_between, EcnOption::Rfc, true), Some(2));
}

#[test]
fn an_acknowledgement_that_was_overtaken_counts_nothing() {
    let config = Config { ecn: EcnMode::Accurate, repair: Repair::Sack, initial_window: 10, ..plain() };
    let mut bench = Bench::new(&config);
    bench.spacing = Span::from_ms(1);
    bench.write(CLIENT, 10_000).mark(CLIENT, Kind::Data, &[4, 5]);
    // The acknowledgement of the third comes after that of the sixth.
    bench.delay(SERVER, Kind::Ack, &[3], Span::from_us(3_500)).run();
    assert_eq!((bench.ends[SERVER].marks_received(), bench.ends[CLIENT].marks_heard()), (Some(2), Some(2)));
}

#[test]
fn dctcp_learns_the_share_of_marks_from_counts() {
    // The same marks with each kind of feedback and an acknowledgement a segment: the same alpha, and the same window.
    let of = |ecn| {
        let config = Config {
            ecn,
            control: Control::Dctcp,
            repair: Repair::Sack,
            ect: Ecn::Ect1,
            initial_window: 10,
            ecn_floor: 2,
            ..plain()
        };
        let mut bench = Bench::new(&config);
        bench.write(CLIENT, 1_000_000);
        bench.script(|packet| match packet.kind {
            Kind::Data if packet.number % 7 == 3 => Fate::Mark,
            _ => Fate::Pass,
        });
        bench.run_to(3_000);
        let end = &bench.ends[CLIENT];
        assert_eq!(
            end.marks_heard(),
            if ecn == EcnMode::Accurate { bench.ends[SERVER].marks_received() } else { None }
        );
        (end.cwnd(), end.ssthresh(), end.stats().ecn_reductions, end.acknowledged())
    };
    assert_eq!(of(EcnMode::Accurate), of(EcnMode::On));
}

/// What may become of packets with data and, apart from that, of acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Path {
    seed: u64,
    mark: f64,
    loss: f64,
    late: f64,
    /// Acknowledgements that are lost, and how many in a row at most.
    thinned: f64,
    row: u32,
}

/// A transfer over such a path, through to its end.
fn transfer(config: &Config, segments: u64, path: Path) -> Bench {
    let mut bench = Bench::new(config);
    bench.spacing = Span::from_us(1_100);
    let mut stream = Stream::named(path.seed, "path");
    let mut row = 0;
    bench.script(move |packet| {
        if packet.from == SERVER {
            let is_lost = row < path.row && stream.chance(path.thinned);
            row = if is_lost { row + 1 } else { 0 };
            return if is_lost { Fate::Lose } else { Fate::Pass };
        }
        match stream.unit() {
            unit if unit < path.loss => Fate::Lose,
            unit if unit < path.loss + path.late => Fate::Late(Span::from_us(1_100 * (1 + stream.below(8)))),
            _ if stream.chance(path.mark) => Fate::Mark,
            _ => Fate::Pass,
        }
    });
    bench.write(CLIENT, segments * u64::from(config.mss)).close(CLIENT).run();
    bench
}

fn receivers() -> impl Strategy<Value = Config> {
    (any::<[bool; 4]>(), prop_oneof![Just(Repair::Sack), Just(Repair::Rack)]).prop_map(|([a, b, c, d], repair)| {
        let base = if a { plain() } else { delayed() };
        let control = if c { Control::Dctcp } else { Control::Cubic };
        let delayed_ack = DelayedAck { hurries_for_ecn: b, adapts: d, ..base.delayed_ack };
        let dsack = true;
        Config { ecn: EcnMode::Accurate, timestamps: true, ecn_floor: 2, repair, control, delayed_ack, dsack, ..base }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Data is lost, marked and overtaken; acknowledgements arrive, but for at most two in a row where each tells of
    /// two segments: never more than seven packets are told of at once, and the counters agree at the end.
    #[test]
    fn a_sender_hears_of_as_many_marks_as_its_receiver_saw(
        config in receivers(), seed: u64, segments in 1..300_u64, mark in 0.0..1.0_f64,
        loss in prop_oneof![Just(0.0), 0.0..0.1], thinned in prop_oneof![Just(0.0), 0.0..0.7],
    ) {
        let path = Path { seed, mark, loss, late: 0.0, thinned, row: 2 };
        let bench = transfer(&config, segments, path);
        prop_assert_eq!(bench.ends[CLIENT].marks_heard(), bench.ends[SERVER].marks_received());
    }

    /// However many acknowledgements are lost: no mark is overlooked, and what is heard too much is whole rounds of the
    /// field, no more of them than fit into what was sent.
    #[test]
    fn a_sender_never_hears_of_fewer(
        config in receivers(), seed: u64, segments in 1..300_u64, mark in 0.0..1.0_f64,
        loss in prop_oneof![Just(0.0), 0.0..0.1], thinned in 0.0..0.98_f64,
    ) {
        let path = Path { seed, mark, loss, late: 0.0, thinned, row: 8 };
        let bench = transfer(&config, segments, path);
        // Of what came last before it gives up a sender hears nothing.
        prop_assume!(!bench.ends[CLIENT].is_aborted());
        let heard = bench.ends[CLIENT].marks_heard().expect("it counts");
        let seen = bench.ends[SERVER].marks_received().expect("it counts");
        prop_assert!(heard >= seen && (heard - seen).is_multiple_of(8), "{} of {}", heard, seen);
        prop_assert!(u64::from(heard) <= segments + 7);
    }

    /// By Linux's rule marks may be overlooked, but no more are heard too much than were sent.
    #[test]
    fn linux_hears_of_no_more_than_was_sent(
        config in receivers(), seed: u64, segments in 1..300_u64, mark in 0.0..1.0_f64,
        loss in prop_oneof![Just(0.0), 0.0..0.1], thinned in 0.0..0.98_f64,
    ) {
        let path = Path { seed, mark, loss, late: 0.0, thinned, row: 8 };
        let bench = transfer(&Config { ect_on_all: true, ..config }, segments, path);
        prop_assume!(!bench.ends[CLIENT].is_aborted());
        let heard = bench.ends[CLIENT].marks_heard().expect("it counts");
        let seen = bench.ends[SERVER].marks_received().expect("it counts");
        prop_assert!(u64::from(heard) <= u64::from(seen) + segments + 7, "{} of {}", heard, seen);
    }

    /// Data is overtaken too. A segment that comes when it was sent again is acknowledged without progress; its mark is
    /// told by whatever is acknowledged next.
    #[test]
    fn reordering_loses_no_mark(
        config in receivers(), seed: u64, segments in 1..300_u64, mark in 0.0..1.0_f64,
        loss in prop_oneof![Just(0.0), 0.0..0.05], late in 0.0..0.3_f64,
    ) {
        let path = Path { seed, mark, loss, late, thinned: 0.0, row: 0 };
        let bench = transfer(&config, segments, path);
        prop_assert_eq!(bench.ends[CLIENT].marks_heard(), bench.ends[SERVER].marks_received());
    }
}
