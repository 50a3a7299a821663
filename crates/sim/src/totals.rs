//! [`Totals`] sums up what all TCP connections have done.

use crate::connection::{Application, Connection};
use record::{HeldBack, TcpTotals};
use scenario::Scenario;

/// Sums over connections since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    is_used: bool,
    delivered: [u64; 2],
    retransmitted: u64,
    timeouts: u64,
    recoveries: u64,
    ecn_reductions: u64,
    /// Connections that ended.
    pub completed: u64,
    /// Connections that were given up.
    pub failed: u64,
    /// Bytes of each everlasting flow, by block.
    bulk: Vec<Vec<u64>>,
    /// What held them back, by block, as far as it was seen.
    pub seen: Vec<Option<HeldBack>>,
}

impl Totals {
    /// Totals of nothing.
    pub fn new(scenario: &Scenario) -> Self {
        let is_used = scenario.traffic.iter().any(|t| t.workload.carries().speaks_tcp());
        let bulk = scenario.traffic.iter().map(|traffic| vec![0; traffic.workload.endless() as usize]);
        Self { is_used, bulk: bulk.collect(), ..Self::default() }
    }

    /// Adds what both ends of `connection` have done.
    pub fn add(&mut self, connection: &Connection) {
        for (side, end) in connection.ends.iter().enumerate() {
            self.add_end(side, end);
        }
        if let Application::Transfer(_) = connection.application
            && let Some(bytes) = self.bulk[connection.block as usize].get_mut(connection.number as usize)
        {
            *bytes += connection.ends[1 - connection.client as usize].received();
        }
    }

    /// Adds what the end on `side` has done.
    pub fn add_end(&mut self, side: usize, end: &tcp::Endpoint) {
        let stats = end.stats();
        self.retransmitted += u64::from(stats.retransmitted);
        self.timeouts += u64::from(stats.timeouts);
        self.recoveries += u64::from(stats.recoveries);
        self.ecn_reductions += u64::from(stats.ecn_reductions);
        // What the right side received came forward.
        self.delivered[1 - side] += end.received();
    }

    /// What held endless flows back, by block, since `earlier`.
    fn held_back(&self, earlier: &Self) -> Vec<Option<HeldBack>> {
        let blocks = self.seen.iter().zip(self.bulk.iter().zip(&earlier.bulk));
        let sum = |bytes: &[u64]| bytes.iter().sum::<u64>();
        blocks.map(|(seen, (now, then))| seen.map(|seen| HeldBack { bytes: sum(now) - sum(then), ..seen })).collect()
    }

    /// The difference from `earlier`: what was done since.
    pub fn since(&self, earlier: &Self) -> TcpTotals {
        let flows = self.bulk.iter().flatten().zip(earlier.bulk.iter().flatten());
        TcpTotals {
            is_used: self.is_used,
            delivered_bytes: [self.delivered[0] - earlier.delivered[0], self.delivered[1] - earlier.delivered[1]],
            retransmitted_segments: self.retransmitted - earlier.retransmitted,
            timeouts: self.timeouts - earlier.timeouts,
            recoveries: self.recoveries - earlier.recoveries,
            ecn_reductions: Some(self.ecn_reductions - earlier.ecn_reductions),
            flows_completed: self.completed - earlier.completed,
            flows_failed: self.failed - earlier.failed,
            // The meters count these.
            lost_before_link: None,
            bulk_bytes: flows.map(|(now, then)| now - then).collect(),
            held_back: self.held_back(earlier),
        }
    }
}
