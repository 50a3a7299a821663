//! Both drivers hand over the rows of the tables, which are defined here.

use crate::seconds::seconds;
use aqm::{Cause, Gauges};
use base::{Span, Time};

/// One exchange: a request and its response, or one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeRow {
    /// When it was asked for.
    pub start: Time,
    /// The time from the request, with the opening of its connection, to the arrival of the last byte.
    pub response_time: Span,
    /// The part of the response time until the connection was open; zero on a connection that was open already.
    pub setup: Span,
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

/// One interval of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct QueueRow {
    /// End of the interval.
    pub time: Time,
    /// The link, by number.
    pub link: u16,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
    /// Packets that arrived in it.
    pub offered_packets: u32,
    /// Packets that left in it.
    pub delivered_packets: u32,
    /// Bytes of the packets that left in it.
    pub delivered_bytes: u64,
    /// Packets lost in it.
    pub dropped_packets: u32,
    /// Packets marked in it.
    pub marked_packets: u32,
    /// Packets waiting at its end.
    pub queue_packets: u32,
    /// Bytes waiting at its end.
    pub queue_bytes: u64,
    /// Sum of the times waited by the packets that left in it.
    pub queue_delay_sum: Span,
    /// Longest time waited by them; zero if none left.
    pub queue_delay_max: Span,
    /// The discipline's probability, control variable and flows that it keeps at its end.
    pub gauges: Gauges,
}

impl QueueRow {
    /// Mean time waited by the packets that left in it, seconds; `None` if none did.
    pub fn queue_delay_mean_s(&self) -> Option<f64> {
        let packets = self.delivered_packets;
        (packets > 0).then(|| seconds(self.queue_delay_sum.ns() as f64) / f64::from(packets))
    }
}

/// Packets of the measured window that waited for about as long in one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRow {
    /// The link, by number.
    pub link: u16,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
    /// They waited no longer than this, and longer than those of the row before.
    pub queue_delay: Span,
    /// How many they are.
    pub packets: u64,
}

/// One loss or mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropRow {
    /// When.
    pub time: Time,
    /// The link, by number.
    pub link: u16,
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

/// One packet of a probe flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeRow {
    /// When it was sent.
    pub sent: Time,
    /// Its one-way delay; `None` if it was lost.
    pub delay: Option<Span>,
    /// Its number within the flow, from 0.
    pub packet: u32,
    /// Block of traffic.
    pub traffic: u16,
    /// Flow within the block.
    pub source: u32,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
}

/// One frame of real-time video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameRow {
    /// When it was encoded.
    pub encoded: Time,
    /// The time until the receiver had all of it; `None` if it never came whole.
    pub delay: Option<Span>,
    /// Its number within the source, from 0.
    pub frame: u32,
    /// Bytes of media in it.
    pub bytes: u32,
    /// The rate that the encoder was asked for, bits a second.
    pub rate_bps: u64,
    /// Block of traffic.
    pub traffic: u16,
    /// Source within the block.
    pub source: u32,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
}

/// What one connection's sender is at one instant, as `struct tcp_info` of linux/tcp.h has it: of a real host by its
/// kernel, of a simulated one as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpRow {
    /// When.
    pub time: Time,
    /// Block of traffic.
    pub traffic: u16,
    /// User or flow within the block.
    pub source: u32,
    /// Which end was asked: 0 left, 1 right.
    pub side: u8,
    /// `tcpi_state`: 1 is established.
    pub state: u8,
    /// `tcpi_ca_state`: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub congestion_state: u8,
    /// `tcpi_snd_cwnd`, congestion window, segments.
    pub cwnd_segments: u32,
    /// `tcpi_snd_ssthresh`, segments; `None` before the first reduction.
    pub ssthresh_segments: Option<f64>,
    /// `tcpi_unacked` less `tcpi_sacked` and `tcpi_lost` and with `tcpi_retrans`: segments in the network.
    pub in_flight_segments: u32,
    /// `tcpi_rtt`, smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Span>,
    /// `tcpi_rttvar`, its mean deviation; `None` before the first sample.
    pub rttvar: Option<Span>,
    /// `tcpi_rto`, retransmission timeout.
    pub rto: Span,
    /// `tcpi_pacing_rate`, bits a second; `None` where nothing is paced.
    pub pacing_rate_bps: Option<f64>,
    /// `tcpi_bytes_acked`, bytes that were acknowledged since it was opened.
    pub acknowledged_bytes: u64,
    /// `tcpi_total_retrans`, segments sent again since it was opened.
    pub retransmitted_segments: u32,
    /// `tcpi_delivered`, segments that were acknowledged since it was opened.
    pub delivered_segments: u32,
    /// `tcpi_delivered_ce`, those of them with a mark; `None` of a simulated host, who does not count them.
    pub delivered_ce_segments: Option<f64>,
}

/// Something that was asked for, as it is recorded to be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandRow {
    /// Block of traffic.
    pub traffic: u16,
    /// The connection, numbered in the order of opening.
    pub connection: u64,
    /// When.
    pub at: Time,
    /// What.
    pub demanded: Demanded,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demanded {
    /// An exchange.
    Exchange {
        /// Which way the response flows and the round-trip propagation delay, if the connection is opened for it.
        opened: Option<(u8, Span)>,
        /// Bytes of the request.
        request_bytes: u32,
        /// Bytes of the response.
        response_bytes: u64,
        /// What the server takes to answer.
        server_delay: Span,
        /// Whether the server closes the connection after the response.
        is_last: bool,
    },
    /// That the client closes the connection.
    Close,
}

/// Where finished rows go.
pub trait Sink {
    /// An exchange was completed within the measured window.
    fn exchange(&mut self, row: &ExchangeRow);
    /// An interval of one direction is over.
    fn queue(&mut self, row: &QueueRow);
    /// A packet was lost or marked. Only called where the scenario asks for it.
    fn drop(&mut self, row: &DropRow);
    /// The fate of a probe that was sent within the measured window is known. Most have no use for it.
    fn probe(&mut self, _row: &ProbeRow) {}
    /// The fate of a frame that was encoded within the measured window is known.
    fn frame(&mut self, _row: &FrameRow) {}
    /// A sender was looked at. Only of real hosts, and where the scenario asks for it.
    fn tcp(&mut self, _row: &TcpRow) {}
    /// Something is asked for, in the order of time. Only called where the scenario asks for it.
    fn demand(&mut self, _row: &DemandRow) {}
}

/// The sink that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn exchange(&mut self, _row: &ExchangeRow) {}
    fn queue(&mut self, _row: &QueueRow) {}
    fn drop(&mut self, _row: &DropRow) {}
}
