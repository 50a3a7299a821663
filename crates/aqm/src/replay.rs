//! This file puts a discipline through a given story of arrivals and departures, and writes down what it decides, so
//! that two disciplines can be compared decision by decision. The words are those of `testdata/vectors/README.md`.

use crate::{Backlog, Cause, Gauges, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Time};

/// A step of a story.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it happens. Whatever periodic work is due by then is done first, each tick at its own time.
    pub at: Time,
    /// What happens.
    pub deed: Deed,
}

/// What happens in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// A packet arrives. Packets are numbered from 1 in the order of their arrivals.
    Offer {
        /// Its size in bytes.
        size: u32,
        /// Its ECN field.
        ecn: Ecn,
        /// Its flow.
        flow: FlowKey,
    },
    /// The link asks for a packet.
    Take,
    /// Nothing; the state is written down.
    Look,
}

/// What came of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// What was told, such as `mark early #3, accept #3`.
    Told(String),
    /// What was held, and what the discipline showed.
    State(Backlog, Gauges),
}

/// A packet of a story.
pub struct Numbered {
    number: u64,
    size: u32,
    ecn: Ecn,
    flow: FlowKey,
}

impl Packet for Numbered {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn flow(&self) -> FlowKey {
        self.flow
    }
}

/// What was told during one step.
#[derive(Default)]
struct Told(Vec<String>);

impl Tap<Numbered> for Told {
    fn accepted(&mut self, packet: &Numbered, _: Time) {
        self.0.push(format!("accept #{}", packet.number));
    }
    fn dropped(&mut self, packet: Numbered, cause: Cause, _: Time) {
        self.0.push(format!("drop {} #{}", cause.name(), packet.number));
    }
    fn marked(&mut self, packet: &Numbered, cause: Cause, _: Time) {
        self.0.push(format!("mark {} #{}", cause.name(), packet.number));
    }
}

impl Headers<Numbered> for Told {}

/// What `qdisc` makes of a story, a step an outcome. Times of steps never fall.
pub fn replay(qdisc: &mut dyn Qdisc<Numbered>, steps: impl IntoIterator<Item = Step>) -> Vec<Outcome> {
    let mut offers = 0;
    let one = |Step { at, deed }| {
        while qdisc.next_tick() <= at {
            qdisc.tick(qdisc.next_tick());
        }
        let mut told = Told::default();
        match deed {
            Deed::Offer { size, ecn, flow } => {
                offers += 1;
                qdisc.offer(Numbered { number: offers, size, ecn, flow }, at, &mut told);
            }
            Deed::Take => {
                let taken = qdisc.take(at, &mut told).packet();
                told.0.push(taken.map_or_else(|| "none".into(), |held| format!("send #{}", held.packet.number)));
            }
            Deed::Look => return Outcome::State(qdisc.backlog(), qdisc.gauges()),
        }
        Outcome::Told(told.0.join(", "))
    };
    steps.into_iter().map(one).collect()
}
