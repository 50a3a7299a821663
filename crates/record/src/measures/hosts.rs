//! These measures are of the hosts: what TCP did, and what became of UDP.

use super::Row;
use crate::meter::Counts;
use serde_json::{Map, Value, json};

/// What TCP did within the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpTotals {
    /// Whether any TCP ran.
    pub is_used: bool,
    /// Bytes that reached applications in order, forward and in reverse.
    pub delivered_bytes: [u64; 2],
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timers that expired.
    pub timeouts: u64,
    /// Reductions of a window by fast recovery.
    pub recoveries: u64,
    /// Reductions of a window by ECN; `None` where the hosts do not count them.
    pub ecn_reductions: Option<u64>,
    /// Connections that ended.
    pub flows_completed: u64,
    /// Connections that were given up.
    pub flows_failed: u64,
    /// Packets lost before they reached the bottleneck; `None` where no connection has losses of its own.
    pub lost_before_link: Option<u64>,
    /// Bytes of each everlasting flow, for Jain's index.
    pub bulk_bytes: Vec<u64>,
    /// What held endless flows back, by block: `None` for a block without such flows, empty where nobody looked.
    pub held_back: Vec<Option<HeldBack>>,
}

/// What held the endless flows of a block back, as seen at intervals within the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// How often one of them was looked at.
    pub looks: u64,
    /// How often it had data that the receiver's window did not let out.
    pub by_window: u64,
    /// How often data of its own waited for its access link.
    pub by_access: u64,
    /// What they delivered, bytes.
    pub bytes: u64,
}

/// What TCP did, and in what time.
pub struct Tcp<'a> {
    /// What it did.
    pub totals: &'a TcpTotals,
    /// Length of the measured window, seconds.
    pub measured_s: f64,
}

impl Tcp<'_> {
    /// A number, or null where no TCP ran.
    fn used(&self, value: Value) -> Value {
        if self.totals.is_used { value } else { Value::Null }
    }

    fn goodput(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.measured_s
    }
}

/// What became of UDP, over all links and directions.
pub struct Udp {
    offered: u64,
    lost: u64,
    lost_before_link: u64,
}

impl Udp {
    /// What the counts of all ports say of UDP.
    pub fn new(ports: &[&Counts]) -> Self {
        Self {
            offered: ports.iter().map(|counts| counts.udp_offered).sum(),
            lost: ports.iter().map(|counts| counts.udp_lost).sum(),
            lost_before_link: ports.iter().map(|counts| counts.lost_before_link[1]).sum(),
        }
    }

    fn is_used(&self) -> bool {
        self.offered > 0
    }
}

/// A function that works out one number of TCP.
pub type OfTcp = fn(&Tcp<'_>) -> Value;

/// The rows of TCP, as the summary has them.
pub const TCP: &[Row<OfTcp>] = &[
    Row {
        name: "goodput_bps",
        title: "goodput",
        unit: "bit/s",
        formula: "bits that reached applications in order ÷ window; of both directions the sum",
        source: "what receivers handed over",
        parameters: Some("`direction` forward"),
        value: |hosts| hosts.used(json!(hosts.goodput(hosts.totals.delivered_bytes.iter().sum()))),
    },
    Row {
        name: "forward_goodput_bps",
        title: "goodput, forward",
        unit: "bit/s",
        formula: "goodput of the data that flowed forward",
        source: "what receivers handed over",
        parameters: None,
        value: |hosts| hosts.used(json!(hosts.goodput(hosts.totals.delivered_bytes[0]))),
    },
    Row {
        name: "reverse_goodput_bps",
        title: "goodput, reverse",
        unit: "bit/s",
        formula: "goodput of the data that flowed in reverse",
        source: "what receivers handed over",
        parameters: None,
        value: |hosts| hosts.used(json!(hosts.goodput(hosts.totals.delivered_bytes[1]))),
    },
    Row {
        name: "retransmitted_segments",
        title: "sent again",
        unit: "",
        formula: "segments sent again",
        source: "counts of the hosts",
        parameters: None,
        value: |hosts| hosts.used(json!(hosts.totals.retransmitted_segments)),
    },
    Row {
        name: "timeouts",
        title: "timeouts",
        unit: "",
        formula: "expirations of retransmission timers, those of SYN and SYN/ACK too",
        source: "counts of the hosts",
        parameters: Some(""),
        value: |hosts| hosts.used(json!(hosts.totals.timeouts)),
    },
    Row {
        name: "recoveries",
        title: "recoveries",
        unit: "",
        formula: "reductions of a window by fast recovery",
        source: "counts of the hosts",
        parameters: None,
        value: |hosts| hosts.used(json!(hosts.totals.recoveries)),
    },
    Row {
        name: "ecn_reductions",
        title: "reductions by ECN",
        unit: "",
        formula: "reductions of a window by ECN; null of a live run",
        source: "counts of the hosts",
        parameters: None,
        value: |hosts| hosts.used(json!(hosts.totals.ecn_reductions)),
    },
    Row {
        name: "flows_completed",
        title: "ended",
        unit: "",
        formula: "connections that ended",
        source: "counts of the hosts",
        parameters: None,
        value: |hosts| hosts.used(json!(hosts.totals.flows_completed)),
    },
    Row {
        name: "flows_failed",
        title: "given up",
        unit: "",
        formula: "connections that were given up",
        source: "counts of the hosts",
        parameters: Some(""),
        value: |hosts| hosts.used(json!(hosts.totals.flows_failed)),
    },
    Row {
        name: "lost_before_link_packets",
        title: "lost before the link",
        unit: "packets",
        formula: "TCP's packets lost before they reached the link, where the path loses some (`path.loss`) or connections have losses of their own (`tmix`); no other figure counts them. Null where none can be",
        source: "counts of the path",
        parameters: None,
        value: |hosts| json!(hosts.totals.lost_before_link),
    },
    Row {
        name: "jain_index",
        title: "Jain's index",
        unit: "",
        formula: "(Σ x)² ÷ (n Σ x²) over the n endless flows, x the bytes that each received within the window, however late it started; null with fewer than two",
        source: "what receivers handed over",
        parameters: Some(""),
        value: |hosts| json!(jain_index(&hosts.totals.bulk_bytes)),
    },
    Row {
        name: "held_back",
        title: "held back",
        unit: "",
        formula: "what held endless flows back, by block: `goodput_bps` of all its flows, `window_share` and `access_share`, the shares of looks (at each flow once a `record.interval`, or in turn at 256 of them where there are more) at which the receiver's window let nothing more out, or data waited for the flow's own access link. Null without such flows, and of a live run",
        source: "looks at senders",
        parameters: None,
        value: |hosts| held_back(&hosts.totals.held_back, hosts.measured_s),
    },
];

/// A function that works out one number of UDP.
pub type OfUdp = fn(&Udp) -> Value;

/// The rows of UDP, as the summary has them.
pub const UDP: &[Row<OfUdp>] = &[
    Row {
        name: "offered_packets",
        title: "UDP offered",
        unit: "packets",
        formula: "UDP packets, probes included, that arrived at the first link of their route",
        source: "counts of the links",
        parameters: None,
        value: |udp| json!(udp.is_used().then_some(udp.offered)),
    },
    Row {
        name: "lost_packets",
        title: "UDP lost",
        unit: "packets",
        formula: "of the UDP packets offered, those lost at any link",
        source: "counts of the links",
        parameters: None,
        value: |udp| json!(udp.is_used().then_some(udp.lost)),
    },
    Row {
        name: "loss_ratio",
        title: "UDP loss",
        unit: "share of packets",
        formula: "UDP packets lost ÷ UDP packets offered",
        source: "counts of the links",
        parameters: None,
        value: |udp| json!(udp.is_used().then(|| udp.lost as f64 / udp.offered as f64)),
    },
    Row {
        name: "lost_before_link_packets",
        title: "UDP lost before the link",
        unit: "packets",
        formula: "UDP packets lost before they reached the link (`path.loss`); null where none was sent",
        source: "counts of the path",
        parameters: None,
        value: |udp| json!((udp.offered + udp.lost_before_link > 0).then_some(udp.lost_before_link)),
    },
];

/// An object by the number of the block; null where no block has endless flows that were looked at.
fn held_back(blocks: &[Option<HeldBack>], measured_s: f64) -> Value {
    let seen = blocks.iter().enumerate().filter_map(|(block, seen)| Some((block, seen.filter(|it| it.looks > 0)?)));
    let shares = seen.map(|(block, seen)| {
        let share = |looks: u64| looks as f64 / seen.looks as f64;
        let goodput_bps = seen.bytes as f64 * 8.0 / measured_s;
        let (window_share, access_share) = (share(seen.by_window), share(seen.by_access));
        let found = json!({ "goodput_bps": goodput_bps, "window_share": window_share, "access_share": access_share });
        (block.to_string(), found)
    });
    let shares: Map<String, Value> = shares.collect();
    if shares.is_empty() { Value::Null } else { Value::Object(shares) }
}

/// Jain's fairness index: (sum x)² / (n sum x²); `None` for fewer than two flows or none that moved.
fn jain_index(bytes: &[u64]) -> Option<f64> {
    let sum: f64 = bytes.iter().map(|&b| b as f64).sum();
    let squares: f64 = bytes.iter().map(|&b| b as f64 * b as f64).sum();
    (bytes.len() > 1 && squares > 0.0).then(|| sum * sum / (bytes.len() as f64 * squares))
}
