//! The rows of the tables, as the drivers hand them over.

use aqm::{Cause, Gauges};

/// One exchange: a request and its response, or one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeRow {
    /// When it was asked for, seconds since the start of the run.
    pub start_s: f64,
    /// From being asked for, the opening of its connection included, to the last byte's arrival, seconds.
    pub response_time_s: f64,
    /// The part of it until the connection was open, seconds; 0 on a connection that was open already.
    pub setup_s: f64,
    /// Bytes of the request.
    pub request_bytes: u32,
    /// Bytes of the response or transfer.
    pub response_bytes: u64,
    /// Block of traffic.
    pub traffic: u16,
    /// User or flow within the block.
    pub source: u32,
    /// Which way the response flowed: 0 forward, 1 in reverse.
    pub direction: u8,
}

/// One interval of one direction of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct QueueRow {
    /// End of the interval, seconds since the start of the run.
    pub time_s: f64,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
    /// Packets that arrived in it.
    pub offered_packets: u32,
    /// Packets that left in it.
    pub delivered_packets: u32,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost in it.
    pub dropped_packets: u32,
    /// Packets marked in it.
    pub marked_packets: u32,
    /// Packets waiting at its end.
    pub queue_packets: u32,
    /// Bytes waiting at its end.
    pub queue_bytes: u64,
    /// Mean time waited by the packets that left in it, seconds.
    pub queue_delay_mean_s: Option<f64>,
    /// Longest time waited by them, seconds.
    pub queue_delay_max_s: Option<f64>,
    /// The discipline's probability and control variable at its end.
    pub gauges: Gauges,
}

/// One loss or mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropRow {
    /// When, seconds since the start of the run.
    pub time_s: f64,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
    /// Whether it was marked rather than lost.
    pub is_mark: bool,
    /// Why.
    pub cause: Cause,
    /// Size of the packet, bytes.
    pub size_bytes: u32,
    /// Flow it belonged to.
    pub flow: u64,
}

/// Where finished rows go.
pub trait Sink {
    /// An exchange was completed within the measured window.
    fn exchange(&mut self, row: &ExchangeRow);
    /// An interval of one direction is over.
    fn queue(&mut self, row: &QueueRow);
    /// A packet was lost or marked. Only called where the scenario asks for it.
    fn drop(&mut self, row: &DropRow);
}

/// The sink that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn exchange(&mut self, _row: &ExchangeRow) {}
    fn queue(&mut self, _row: &QueueRow) {}
    fn drop(&mut self, _row: &DropRow) {}
}
