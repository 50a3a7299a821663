//! The operation model over every discipline there is. Whatever the law, its parameters, the link and what happens to
//! it: packets are conserved, limits kept, flows in order, and what it shows of itself is finite.

use crate::common;
use crate::operations::{self, Model, Op, Setup, drawn};
use aqm::param::{Kind, Length, Values};
use aqm::{Gauges, registry};
use base::{Ecn, Rate, Stream};
use proptest::prelude::*;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let size = prop_oneof![Just(1_u32), Just(40), Just(500), Just(1500), 1_u32..=65_535];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let flow = prop_oneof![9 => 0_u8..5, 1 => any::<u8>()];
    let op = prop_oneof![
        6 => (size, ecn, flow).prop_map(|(size, ecn, flow)| Op::Offer { size, ecn, flow }),
        3 => Just(Op::Take),
        1 => Just(Op::EarlyTick),
        3 => any::<(u8, u8)>().prop_map(|(bits, part)| Op::pass(bits, part)),
    ];
    // Repetitions make the bursts that fill a queue and the silences that drain it.
    proptest::collection::vec((op, 1_usize..40), 1..120)
        .prop_map(|runs| runs.into_iter().flat_map(|(op, times)| std::iter::repeat_n(op, times)).collect())
}

fn setup() -> impl Strategy<Value = Setup> {
    let limit = prop_oneof![
        (0_u32..=2).prop_map(|packets| Length::Packets(f64::from(packets))),
        (3_u32..2000).prop_map(|packets| Length::Packets(f64::from(packets))),
        (0_u32..300_000).prop_map(|bytes| Length::Bytes(f64::from(bytes))),
    ];
    let choices = proptest::collection::vec(any::<u32>(), 1..24);
    (any::<u16>(), limit, any::<bool>(), choices, any::<u64>()).prop_map(|(rate, limit, ecn, choices, seed)| Setup {
        rate,
        limit,
        ecn,
        choices,
        seed,
    })
}

proptest! {
    // Failing cases print the seed that replays them; nothing is written beside the sources.
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_keeps_its_books(setup in setup(), ops in ops()) {
        for row in registry::rows() {
            let mut model = Model::new(row, &setup);
            for op in &ops {
                model.apply(*op);
            }
            model.drain();
        }
    }
}

#[test]
fn every_parameter_may_be_at_either_end_of_its_range() {
    for row in registry::rows() {
        for param in row.params.iter().filter(|param| !["limit", "ecn"].contains(&&*param.name)) {
            // Each end in each unit, each word, true and false.
            let choices: Vec<u32> = match param.kind {
                Kind::Word(words) => (0..words.len() as u32).map(|word| word << 6).collect(),
                Kind::Flag => vec![0, 64],
                Kind::Length => vec![0, 2, 16, 18],
                Kind::LengthOrTime => vec![0, 2, 16, 18, 32, 34],
                _ => vec![0, 2],
            };
            for (number, choice) in choices.into_iter().enumerate() {
                let value = operations::chosen(param, choice).expect("it is no default");
                // From one link to the next by a factor of 1000 or so.
                for rate in [0, u16::MAX / 2, u16::MAX] {
                    let limit = [Length::Packets(100.0), Length::Bytes(50_000.0)][number % 2];
                    let setup = Setup { rate, limit, ecn: number % 2 == 0, choices: Vec::new(), seed: number as u64 };
                    let mut model = Model::given(row, &setup, Values([(param.name.clone(), value.clone())].into()));
                    for op in drawn(u64::from(rate) + number as u64) {
                        model.apply(op);
                    }
                    model.drain();
                }
            }
        }
    }
}

#[test]
fn every_row_runs_with_no_parameter_but_its_kind() {
    for rate in [64_000, 10_000_000, 1_000_000_000, 100_000_000_000] {
        for row in registry::rows() {
            let qdisc = common::built::<common::Parcel>(&row.name, &[], Rate::from_bps(rate), Stream::named(1, "row"));
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
        for param in &row.params {
            assert!(!param.doc.is_empty() && !param.source.is_empty(), "{} {}", row.name, param.name);
            let same = row.params.iter().filter(|other| other.name == param.name).count();
            assert_eq!(same, 1, "{} {} is there once", row.name, param.name);
            assert!(!param.default.is_empty() || param.doc.contains("omputed") || param.doc.contains("absent"));
        }
        for gauge in &row.gauges {
            let same = row.gauges.iter().filter(|other| other.name == gauge.name || other.column == gauge.column);
            assert_eq!(same.count(), 1, "{} {} is there once, in a column of its own", row.name, gauge.name);
            let shown = Gauges { probability: Some(0.0), control: Some(1.0), tracked_flows: Some(2) };
            assert_eq!(row.reading(&gauge.name, &shown), Some(f64::from(gauge.column as u8)));
            assert!(gauge.doc.ends_with('.'), "{} {} is described", row.name, gauge.name);
        }
        for name in row.names() {
            assert_eq!(registry::row(name).map(|found| &found.name), Some(&row.name), "{name} means one row");
        }
        // Values as resolved, read back and resolved again, are the same.
        let rate = Rate::from_bps(100_000_000);
        let once = common::values(&row.name, &[], rate).expect("defaults fit");
        let written: Vec<_> = once.0.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let twice = common::values(&row.name, &written, rate).expect("what was resolved is good");
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
        ("rio", vec![("min_in", "80p")], "rio: max_in: expected a length of at least min_in, 80p, and in its unit"),
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
