//! Flows that arrive at random: exponential gaps between arrivals and independent sizes, however slow the network is.

use crate::MOST_BYTES;
use base::Span;
use base::Stream;
use base::dist::Distribution;

/// One flow of an open-loop arrival process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowDemand {
    /// Time since the flow before, or since the start of the process.
    pub gap: Span,
    /// Bytes to transfer, at least 1.
    pub bytes: u64,
    /// The path's round-trip time, as a quantile in (0, 1) of whatever distribution the scenario states.
    pub rtt_unit: f64,
}

/// A Poisson process of flows.
#[derive(Clone, Debug)]
pub struct PoissonFlows {
    stream: Stream,
    gap: Distribution,
    size: Distribution,
}

impl PoissonFlows {
    /// Flows every `mean_gap` on average, of sizes in bytes drawn from `size`.
    pub fn new(stream: Stream, mean_gap: Span, size: Distribution) -> Self {
        Self { stream, gap: Distribution::Exponential { mean: mean_gap.secs_f64() }, size }
    }

    /// The next flow.
    pub fn next_flow(&mut self) -> FlowDemand {
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
