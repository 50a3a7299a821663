//! Exchanges or transfers that arrive as a Poisson process, each on a connection of its own.

use super::keys::{ARRIVALS, MOST_ASKED, OF_RESPONSES, REQUIRED, arrivals, at_least_a_byte};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::scenario::Direction;
use crate::units;
use crate::voice::{Asks, Command, Turn, Voice};
use crate::written::Written;
use base::{Distribution, Span, Stream, Time};
use traffic::{Exchange, MOST_BYTES};

/// Transfers that arrive at random, each on a connection of its own.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// Arrivals a second in all.
    pub arrivals_per_s: f64,
    /// Request bytes.
    pub request_bytes: u32,
    /// Response bytes.
    pub size: Distribution,
}

const SIZE: Key = Key {
    name: "size",
    takes: Takes::Drawn("size or distribution"),
    default: REQUIRED,
    doc: "distribution of response bytes",
};
/// The median request of PackMime-HTTP (Cao, Cleveland, Gao, Jeffay, Smith and Weigle, INFOCOM 2004).
const REQUEST: Key = Key {
    name: "request",
    takes: Takes::Size(0, MOST_ASKED),
    default: "420b",
    doc: "request bytes; 0b: who opens the connection sends",
};

impl Kind for Poisson {
    const ROW: Row = Row {
        name: "poisson",
        called: &["short", "mice", "arrivals"],
        speaks_tcp: true,
        is_recorded: true,
        direction: (Direction::Forward, OF_RESPONSES),
        own: None,
        applications: &["pages"],
        models: &[Model {
            name: "",
            doc: "Exchanges that arrive at random, each on a connection of its own",
            source: "open-loop arrivals, as in PackMime without its correlations",
            keys: &[ARRIVALS, SIZE, REQUEST],
            words: &[
                ("request=0b", "transfers"),
                ("request!=0b", "exchanges"),
                ("", " at random times ({arrivals} a second, {size})"),
            ],
        }],
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let block = asking.block;
        let arrivals_per_s = arrivals(block)?;
        let expected = "a size or a distribution such as { pareto = { mean = \"7000b\", shape = 1.2 } }";
        let size = block.require(SIZE.name, expected, at_least_a_byte)?;
        let request_bytes = REQUEST.size(block)?;
        let written = vec![
            (ARRIVALS.name, Written::Text(units::write_frequency(arrivals_per_s))),
            (SIZE.name, distribution::write(&size, Quantity::Size)),
            (REQUEST.name, Written::Text(units::write_bytes(f64::from(request_bytes)))),
        ];
        Ok(Asked::known(Self { arrivals_per_s, request_bytes, size }, written))
    }
}

impl Demand for Poisson {
    fn carries(&self) -> Carries {
        // Without a request, the opener of the connection sends the data.
        if self.request_bytes > 0 { Carries::Exchanges } else { Carries::Transfers }
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let gap = Span::from_secs_f64(f64::from(site.processes()) / self.arrivals_per_s);
        for number in 0..site.processes() {
            let mut flows = PoissonFlows::new(site.stream("arrivals", number), gap, self.size.clone());
            let next = flows.next_flow();
            let first = Time::ZERO + next.gap;
            let arrivals = Arrivals { flows, next, count: 0, request_bytes: self.request_bytes };
            out.push(match self.carries() {
                Carries::Transfers => site.sending(number, first, arrivals),
                _ => site.asking(number, first, Lanes::Any, arrivals),
            });
        }
    }

    fn expected(&self) -> Expected {
        Expected::Arrivals { per_s: self.arrivals_per_s, bytes: self.size.mean() }
    }

    fn numbers_arrivals(&self) -> bool {
        true
    }
}

/// Arrivals one way.
struct Arrivals {
    flows: PoissonFlows,
    next: FlowDemand,
    /// How many came already.
    count: u32,
    request_bytes: u32,
}

impl Asks for Arrivals {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        if turn != Turn::Due {
            return;
        }
        let arrival = std::mem::replace(&mut self.next, self.flows.next_flow());
        voice.wake(voice.at + self.next.gap);
        let opening = voice.opening(self.count, voice.rtt(arrival.rtt_unit));
        self.count += 1;
        voice.say(if self.request_bytes == 0 {
            Command::Transfer { opening, bytes: Some(arrival.bytes) }
        } else {
            let (request_bytes, response_bytes) = (self.request_bytes, arrival.bytes);
            let ask = Exchange { request_bytes, response_bytes, top_level: true, server_delay: Span::ZERO };
            Command::Open { opening, owner: None, ask, is_last: true, since: voice.now }
        });
    }
}

/// One flow of an open-loop arrival process.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FlowDemand {
    /// Time since the flow before, or since the start of the process.
    gap: Span,
    /// Bytes to transfer, at least 1.
    bytes: u64,
    /// The path's round-trip time, as a quantile in (0, 1) of whatever distribution the scenario states.
    rtt_unit: f64,
}

/// A Poisson process of flows.
#[derive(Clone, Debug)]
struct PoissonFlows {
    stream: Stream,
    gap: Distribution,
    size: Distribution,
}

impl PoissonFlows {
    /// Flows every `mean_gap` on average, with sizes in bytes drawn from `size`.
    fn new(stream: Stream, mean_gap: Span, size: Distribution) -> Self {
        Self { stream, gap: Distribution::Exponential { mean: mean_gap.secs_f64() }, size }
    }

    /// The next flow.
    fn next_flow(&mut self) -> FlowDemand {
        FlowDemand {
            gap: Span::from_secs_f64(self.gap.draw(&mut self.stream)),
            bytes: (self.size.draw(&mut self.stream) as u64).clamp(1, MOST_BYTES),
            rtt_unit: self.stream.open_unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_mean_and_the_spread_of_a_poisson_process() {
        let mut flows = PoissonFlows::new(
            Stream::named(1, "traffic/0"),
            Span::from_ms(10),
            Distribution::Exponential { mean: 20_000.0 },
        );
        let n = 200_000;
        let (mut gaps, mut squares, mut bytes) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let flow = flows.next_flow();
            gaps += flow.gap.secs_f64();
            squares += flow.gap.secs_f64() * flow.gap.secs_f64();
            bytes += flow.bytes as f64;
        }
        // An exponential has sd = mean, and its square the mean 2 m^2 and the sd sqrt(20) m^2: four standard errors.
        let bound = 4.0 / (n as f64).sqrt();
        assert!((gaps / n as f64 / 0.01 - 1.0).abs() < bound);
        assert!((squares / n as f64 / 0.0001 - 2.0).abs() < 20.0_f64.sqrt() * bound);
        assert!((bytes / n as f64 / 20_000.0 - 1.0).abs() < bound);
    }
}
