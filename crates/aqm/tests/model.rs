//! One model of operations over every discipline there is: offers, takes, ticks, quiet gaps. Whatever the law, packets
//! are conserved, limits kept, flows in order, and what it shows of itself is finite.

mod common;

use aqm::registry::{self, Row};
use aqm::{Cause, Gauges, Qdisc};
use base::{Ecn, Rate, Span, Stream, Time};
use common::{Parcel, Recorder, Told};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Op {
    Offer {
        size: u32,
        ecn: Ecn,
        flow: u64,
    },
    Take,
    /// An early call of `tick`, which must be harmless.
    EarlyTick,
    Pass(Span),
}

#[derive(Clone, Debug)]
struct Setup {
    rate: Rate,
    limit: String,
    ecn: bool,
    /// Which word each parameter that is a word has, and each flag.
    choices: u64,
    seed: u64,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let size = prop_oneof![Just(1_u32), Just(40), Just(500), Just(1500), 1_u32..=65_535];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    // Gaps from nothing to an hour, every order of magnitude alike.
    let gap = (0_u32..42, 0.5_f64..1.0).prop_map(|(bits, part)| Span::from_ns(((1_u64 << bits) as f64 * part) as u64));
    let op = prop_oneof![
        6 => (size, ecn, 0_u64..5).prop_map(|(size, ecn, flow)| Op::Offer { size, ecn, flow }),
        3 => Just(Op::Take),
        1 => Just(Op::EarlyTick),
        3 => gap.prop_map(Op::Pass),
    ];
    // Repetitions make the bursts that fill a queue and the silences that drain it.
    proptest::collection::vec((op, 1_usize..40), 1..120)
        .prop_map(|runs| runs.into_iter().flat_map(|(op, times)| std::iter::repeat_n(op, times)).collect())
}

fn setup() -> impl Strategy<Value = Setup> {
    let limit = prop_oneof![
        (0_u32..=2).prop_map(|p| format!("{p}p")),
        (3_u32..2000).prop_map(|p| format!("{p}p")),
        (0_u32..300_000).prop_map(|b| format!("{b}b")),
    ];
    // 64 kbit/s to 100 Gb/s, every order of magnitude alike.
    let rate = (0.0_f64..=1.0).prop_map(|x| Rate::from_bps((64e3 * base::maths::pow(100e9 / 64e3, x)) as u64));
    (rate, limit, any::<bool>(), any::<u64>(), any::<u64>()).prop_map(|(rate, limit, ecn, choices, seed)| Setup {
        rate,
        limit,
        ecn,
        choices,
        seed,
    })
}

/// A discipline under test, and what the model knows of it.
struct Model {
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    row: &'static Row,
    setup: Setup,
    now: Time,
    offered: u64,
    bytes_held: u64,
    /// What is held, by number; every packet in here is accounted for.
    held: BTreeMap<u64, Parcel>,
    /// The last packet sent of each flow and service: the L4S bit of the ECN field asks for another one (RFC 9331), and
    /// no flow that keeps to one field is ever reordered.
    last_sent: BTreeMap<(u64, bool), u64>,
}

impl Model {
    fn new(row: &'static Row, setup: &Setup) -> Self {
        let mut written = vec![("limit".to_string(), setup.limit.clone()), ("ecn".to_string(), setup.ecn.to_string())];
        // Each word and flag takes its turn: two bits of `choices` each.
        for (index, param) in row.params.iter().filter(|param| !["limit", "ecn"].contains(&param.name)).enumerate() {
            let choice = (setup.choices >> (2 * index % 64)) as usize;
            match param.kind {
                aqm::param::Kind::Word(words) => written.push((param.name.into(), words[choice % words.len()].into())),
                aqm::param::Kind::Flag => written.push((param.name.into(), (choice % 2 == 1).to_string())),
                _ => {}
            }
        }
        let qdisc = common::build(row.name, &written, setup.rate, Stream::named(setup.seed, "model"))
            .expect("defaults, words and limits fit together");
        Self {
            qdisc,
            row,
            setup: setup.clone(),
            now: Time::ZERO,
            offered: 0,
            bytes_held: 0,
            held: BTreeMap::new(),
            last_sent: BTreeMap::new(),
        }
    }

    fn apply(&mut self, op: &Op) {
        let mut recorder = Recorder::default();
        let before = self.held.len();
        match *op {
            Op::Offer { size, ecn, flow } => {
                self.offered += 1;
                let parcel = Parcel { number: self.offered, size, ecn, flow };
                self.held.insert(parcel.number, parcel);
                self.bytes_held += u64::from(size);
                self.qdisc.offer(parcel, self.now, &mut recorder);
                assert!(self.held.len() <= before + 1);
            }
            Op::Take => match self.qdisc.take(self.now, &mut recorder) {
                Some(held) => {
                    let number = held.packet.number;
                    let offered = self.remove(number);
                    assert!(held.enqueued <= self.now, "accepted before it is sent");
                    assert_eq!((held.packet.size, held.packet.flow), (offered.size, offered.flow));
                    assert!(
                        held.packet.ecn == offered.ecn || held.packet.ecn == Ecn::Ce && offered.ecn.is_ect(),
                        "the ECN field changes from ECT to CE only"
                    );
                    assert!(self.setup.ecn && self.row.marks || held.packet.ecn == offered.ecn, "marks only with ecn");
                    let is_l4s = matches!(offered.ecn, Ecn::Ect1 | Ecn::Ce);
                    let last = self.last_sent.insert((offered.flow, is_l4s), number);
                    assert!(
                        last.is_none_or(|last| last < number),
                        "flow {} in order: {last:?}, {number}",
                        offered.flow
                    );
                }
                // Only what the law dropped on the way out may have been there.
                None => assert_eq!(
                    recorder.0.iter().filter(|told| matches!(told, Told::Dropped(..))).count(),
                    before,
                    "a work-conserving discipline gives what it has"
                ),
            },
            Op::EarlyTick => {
                let (backlog, next, gauges) = (self.qdisc.backlog(), self.qdisc.next_tick(), self.qdisc.gauges());
                if next > self.now {
                    self.qdisc.tick(self.now);
                    let after = (self.qdisc.backlog(), self.qdisc.next_tick(), self.qdisc.gauges());
                    assert_eq!((backlog, next, gauges), after, "an early call is harmless");
                }
            }
            Op::Pass(span) => self.pass(span),
        }
        for told in recorder.0 {
            match told {
                Told::Dropped(number, cause) => {
                    self.remove(number);
                    assert!(self.row.marks || cause == Cause::Tail, "drop-tail drops at its limit only");
                }
                Told::Marked(number, _) => {
                    assert!(self.setup.ecn && self.row.marks, "marks only with ecn");
                    assert!(number <= self.offered);
                }
                Told::Accepted(number) => assert_eq!(number, self.offered, "only the packet in hand is accepted"),
            }
        }
        self.check();
    }

    /// Lets time pass as an egress does: ticks at their own times. A gap longer than some thousand ticks jumps over the
    /// rest, as a driver would that slept.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..2000 {
            let due = self.qdisc.next_tick();
            if due > until {
                break;
            }
            self.qdisc.tick(due.max(self.now));
            assert!(self.qdisc.next_tick() > due, "a tick moves on");
        }
        self.now = until;
    }

    fn remove(&mut self, number: u64) -> Parcel {
        let parcel = self.held.remove(&number).expect("what leaves was held");
        self.bytes_held -= u64::from(parcel.size);
        parcel
    }

    fn check(&self) {
        let backlog = self.qdisc.backlog();
        assert_eq!(u64::from(backlog.packets), self.held.len() as u64, "packets are conserved");
        assert_eq!(backlog.bytes, self.bytes_held, "bytes are conserved");
        if let Some(limit) = self.setup.limit.strip_suffix('p') {
            assert!(backlog.packets <= limit.parse().expect("a number"), "the limit is kept: {backlog:?}");
        } else if let Some(limit) = self.setup.limit.strip_suffix('b') {
            assert!(backlog.bytes <= limit.parse().expect("a number"), "the limit is kept: {backlog:?}");
        }
        let Gauges { probability, control } = self.qdisc.gauges();
        assert!(probability.is_none_or(|p| (0.0..=1.0).contains(&p)), "probability {probability:?}");
        assert!(control.is_none_or(f64::is_finite), "control {control:?}");
    }
}

proptest! {
    // Failing cases print the seed that replays them; nothing is written beside the sources.
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_keeps_its_books(setup in setup(), ops in ops()) {
        for row in registry::rows() {
            let mut model = Model::new(row, &setup);
            for op in &ops {
                model.apply(op);
            }
            // Drained, nothing is left.
            for _ in 0..=model.offered {
                model.apply(&Op::Take);
            }
            prop_assert_eq!(model.held.len(), 0, "{} gives everything back", row.name);
        }
    }
}

#[test]
fn every_row_runs_with_no_parameter_but_its_kind() {
    for rate in [64_000, 10_000_000, 1_000_000_000, 100_000_000_000] {
        for row in registry::rows() {
            let qdisc = common::built::<Parcel>(row.name, &[], Rate::from_bps(rate), Stream::named(1, "row"));
            assert_eq!(qdisc.backlog().packets, 0);
        }
    }
}

#[test]
fn every_row_is_documented_and_its_resolution_stable() {
    for row in registry::rows() {
        assert!(
            row.params.iter().any(|p| p.name == "limit") && row.params.iter().any(|p| p.name == "ecn"),
            "{}",
            row.name
        );
        for param in row.params {
            assert!(!param.doc.is_empty() && !param.source.is_empty(), "{} {}", row.name, param.name);
            let same = row.params.iter().filter(|other| other.name == param.name).count();
            assert_eq!(same, 1, "{} {} is there once", row.name, param.name);
            assert!(!param.default.is_empty() || param.doc.contains("omputed") || param.doc.contains("absent"));
        }
        let names = std::iter::once(&row.name).chain(row.aliases);
        for name in names {
            assert_eq!(registry::row(name).map(|found| found.name), Some(row.name), "{name} means one row");
        }
        // Values as resolved, read back and resolved again, are the same.
        let rate = Rate::from_bps(100_000_000);
        let once = common::values(row.name, &[], rate).expect("defaults fit");
        let written: Vec<_> = once.0.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let twice = common::values(row.name, &written, rate).expect("what was resolved is good");
        assert_eq!(once, twice, "{}", row.name);
    }
}

#[test]
fn values_that_do_not_fit_together_are_refused() {
    let rate = Rate::from_bps(10_000_000);
    for (name, written, expected) in [
        ("red", vec![("min", "20p")], "red: max: expected a length of at least min, 20p, and in its unit"),
        ("red", vec![("min", "500b")], "red: max: expected a length of at least min, 500b, and in its unit"),
        (
            "red",
            vec![("gentle_end", "10p")],
            "red: gentle_end: expected a length of at least max, 15p, and in its unit",
        ),
        ("red", vec![("probability", "1.5")], "probability = 1.5: expected a number, from 0 to 1"),
        ("ared", vec![("bottom", "0.6")], "ared: bottom: expected at most top, 0.5"),
        ("pi", vec![("a", "0.1")], "pi: b: expected to be given together with a"),
        ("pi", vec![("a", "0.1"), ("b", "0.2")], "pi: b: expected less than a, 0.1"),
        ("pi", vec![("flows", "10")], "pi: rtt: expected to be given together with flows"),
        ("rem", vec![("phi", "1")], "phi = 1: expected a number, from 1.000000001 to 1000"),
        ("dcn", vec![("a", "0.2")], "dcn: a: expected less than b, 0.18"),
        ("afd", vec![("alpha", "1.8")], "afd: alpha: expected less than beta, 1.8"),
        ("rio", vec![("min_in", "80p")], "rio: max_in: expected a length of at least min, 80p, and in its unit"),
        ("redopt", vec![("udp_rate", "10mbit")], "redopt: udp_rate: expected less than the link's rate"),
        (
            "choke",
            vec![("max", "100b"), ("min", "5p")],
            "choke: max: expected a length of at least min, 5p, and in its unit",
        ),
    ] {
        let written: Vec<_> = written.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect();
        assert_eq!(common::values(name, &written, rate), Err(expected.to_string()));
    }
}
