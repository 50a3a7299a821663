//! The operation model of `crates/aqm/tests/operations`, its discipline, parameters and operations chosen by a fuzzer.

#![no_main]

#[path = "../../crates/aqm/tests/common/mod.rs"]
mod common;
#[path = "../../crates/aqm/tests/operations/mod.rs"]
mod operations;

use aqm::param::Length;
use aqm::registry;
use arbitrary::Arbitrary;
use base::Ecn;
use libfuzzer_sys::fuzz_target;
use operations::{Model, Op, Setup};

/// Most operations of an input: what repetitions make of a few bytes would else be without end.
const MOST_OPS: usize = 4000;

/// An input.
#[derive(Arbitrary, Debug)]
struct Input {
    discipline: u8,
    rate: u16,
    limit: Limit,
    ecn: bool,
    choices: [u32; 20],
    seed: u8,
    runs: Vec<(Call, u8)>,
}

#[derive(Arbitrary, Debug)]
enum Limit {
    Few(u8),
    Packets(u16),
    Bytes(u32),
}

#[derive(Arbitrary, Debug)]
enum Call {
    Offer { size: u16, ecn: u8, flow: u8 },
    OfferFullSized { flow: u8 },
    Take,
    EarlyTick,
    Pass { bits: u8, part: u8 },
}

impl Call {
    fn op(&self) -> Op {
        match *self {
            Self::Offer { size, ecn, flow } => {
                let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(ecn % 4)];
                Op::Offer { size: u32::from(size.max(1)), ecn, flow }
            }
            Self::OfferFullSized { flow } => Op::Offer { size: 1500, ecn: Ecn::Ect0, flow: flow % 4 },
            Self::Take => Op::Take,
            Self::EarlyTick => Op::EarlyTick,
            Self::Pass { bits, part } => Op::pass(bits, part),
        }
    }
}

fuzz_target!(|input: Input| {
    let rows: Vec<_> = registry::rows().collect();
    let limit = match input.limit {
        Limit::Few(packets) => Length::Packets(f64::from(packets % 4)),
        Limit::Packets(packets) => Length::Packets(f64::from(packets)),
        Limit::Bytes(bytes) => Length::Bytes(f64::from(bytes)),
    };
    let setup =
        Setup { rate: input.rate, limit, ecn: input.ecn, choices: input.choices.to_vec(), seed: u64::from(input.seed) };
    let mut model = Model::new(rows[usize::from(input.discipline) % rows.len()], &setup);
    let ops = input.runs.iter().flat_map(|(call, times)| std::iter::repeat_n(call.op(), 1 + usize::from(times % 64)));
    ops.take(MOST_OPS).for_each(|op| model.apply(op));
    model.drain();
});
