//! What somebody sees who looks at a run while it goes on: each link and what users have got so far.

use crate::simulation::Simulation;
use aqm::Backlog;
use record::Passed;

/// The shares of packets and exchanges whose times are shown.
pub const SHARES: [f64; 3] = [0.5, 0.95, 0.99];

/// A look at a run that changes nothing in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance {
    /// Ports stand by link, forward before reverse.
    pub ports: Vec<PortGlance>,
    /// Exchanges that were completed within the measured window so far.
    pub exchanges: u64,
    /// Their response times at [`SHARES`], seconds; `None` if there are none.
    pub response_s: Option<[f64; 3]>,
}

/// One direction of a link. Sums begin with the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortGlance {
    /// Packets that left.
    pub delivered: u64,
    /// Their bytes and waits.
    pub passed: Passed,
    /// Packets lost.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// What waits now.
    pub backlog: Backlog,
    /// Waits at [`SHARES`] of the packets that left within the measured window so far, seconds.
    pub waits_s: Option<[f64; 3]>,
}

impl Simulation<'_> {
    /// Looks at the run.
    pub fn glance(&self) -> Glance {
        let ports = self.network.net.ports().map(|(egress, at)| {
            let counts = egress.counts();
            PortGlance {
                delivered: counts.delivered,
                passed: at.meter.passed(),
                dropped: counts.dropped.iter().sum(),
                marked: counts.marked.iter().sum(),
                backlog: egress.backlog(),
                waits_s: at.meter.window().wait_quantiles_s(SHARES),
            }
        });
        let responses = self.responses();
        let times = SHARES.map(|share| responses.quantile_s(share));
        Glance {
            ports: ports.collect(),
            exchanges: responses.count(),
            response_s: (responses.count() > 0).then(|| times.map(Option::unwrap_or_default)),
        }
    }
}
