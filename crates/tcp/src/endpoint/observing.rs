//! This file has what can be seen of an endpoint from outside, some of it as in `struct tcp_info` (linux/tcp.h). None
//! of it has a part in what the endpoint does.

use super::{Endpoint, State};
use crate::stack::Config;
use base::Span;

/// What an endpoint has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with data or a FIN sent for the first time.
    pub segments: u64,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Expirations of the retransmission timer, of SYN and SYN/ACK too.
    pub timeouts: u32,
    /// Reductions of the window by fast recovery.
    pub recoveries: u32,
    /// Reductions of the window by ECN echo.
    pub ecn_reductions: u32,
    /// Reductions of the window that turned out to be needless and were taken back.
    pub undone: u32,
}

base::packed!(Stats { segments, retransmitted, timeouts, recoveries, ecn_reductions, undone });

/// What a sender does about congestion, by Linux's names and numbers (`enum tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionState {
    /// Nothing is amiss.
    Open = 0,
    /// Something came out of order, or was reported so.
    Disorder = 1,
    /// The window is or was brought down for a mark, and nothing sent since is acknowledged.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a timeout.
    Loss = 4,
}

impl Endpoint {
    /// Bytes that arrived in order, and so reached the application.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Bytes that arrived in order and wait to be read.
    pub fn unread(&self) -> u64 {
        self.receiver.unread()
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the handshake was ever done, also of one that was given up since.
    pub fn was_established(&self) -> bool {
        self.sender.snd_una > 0
    }

    /// Whether the application has said that it has nothing more to write.
    pub fn is_closing(&self) -> bool {
        self.sender.closing
    }

    /// Whether everything the peer will ever send has arrived, its FIN included.
    pub fn peer_closed(&self) -> bool {
        self.receiver.has_heard_all()
    }

    /// Whether an application that waits until so many bytes have arrived, or until the peer closes, still waits.
    #[inline]
    pub fn is_quiet(&self, heeds: impl FnOnce() -> u64) -> bool {
        let is_open = self.state == State::Established && !self.is_one_way;
        is_open && self.receiver.peer_fin == u64::MAX && self.received() < heeds()
    }

    /// Whether nothing is left to do: both FINs sent and acknowledged, or given up.
    pub fn is_done(&self) -> bool {
        let (has_sent, has_heard) = (self.sender.has_sent_all(), self.receiver.has_heard_all());
        self.is_aborted() || has_sent && has_heard || self.is_one_way && (has_sent || has_heard)
    }

    /// Whether the connection was given up after too many retries.
    pub fn is_aborted(&self) -> bool {
        self.state == State::Aborted
    }

    /// How many packets came marked, where the ends count these (RFC 9768).
    pub fn marks_received(&self) -> Option<u32> {
        self.receiver.echo.counted()
    }

    /// Of how many of its packets that came marked it was told, where the ends count these (RFC 9768).
    pub fn marks_heard(&self) -> Option<u32> {
        self.sender.heard.counted()
    }

    /// How many bytes came marked, where AccECN options tell that (RFC 9768).
    pub fn marked_bytes_received(&self) -> Option<u64> {
        self.receiver.echo.bytes.as_ref().map(|counted| counted.marked)
    }

    /// Of how many of its bytes that came marked it was told, where AccECN options tell that (RFC 9768).
    pub fn marked_bytes_heard(&self) -> Option<u64> {
        self.sender.heard.learnt.as_ref().map(|learnt| learnt.marked)
    }

    /// What it has done so far.
    pub fn stats(&self) -> &Stats {
        &self.sender.stats
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> f64 {
        self.sender.window.cwnd
    }

    /// Slow-start threshold, bytes; infinite before the first reduction.
    pub fn ssthresh(&self) -> f64 {
        self.sender.window.ssthresh
    }

    /// What the sender does about congestion.
    pub fn congestion_state(&self) -> CongestionState {
        self.sender.congestion_state()
    }

    /// The congestion controller.
    pub fn controller(&self) -> &crate::cc::Algorithm {
        self.sender.algorithm()
    }

    /// Payload bytes a second at which data is sent; infinite before that is known, none without pacing.
    pub fn pacing_rate(&self) -> Option<f64> {
        self.sender.pacing_rate()
    }

    /// Segments thought to be in the network, however short each is.
    pub fn segments_in_flight(&self) -> u32 {
        self.sender.segments_in_flight()
    }

    /// Smoothed round-trip time, once measured.
    pub fn srtt(&self) -> Option<Span> {
        self.sender.rtt.srtt()
    }

    /// Mean deviation of the round-trip time, once measured.
    pub fn rttvar(&self) -> Option<Span> {
        self.sender.rtt.rttvar()
    }

    /// Retransmission timeout, with its back-off.
    pub fn rto(&self, config: &Config) -> Span {
        self.sender.rtt.rto(config)
    }

    /// Whether there is something to send that the peer's window does not let out.
    pub fn is_held_by_receiver(&self, config: &Config) -> bool {
        self.sender.is_held_by_receiver(config)
    }
}
