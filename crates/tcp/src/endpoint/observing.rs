//! What can be seen of a sender from outside, as `struct tcp_info` tells it (linux/tcp.h). Nothing here has a part in
//! what it does.

use super::{Endpoint, Phase};
use crate::stack::Config;
use base::Span;

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
    /// What it does about congestion.
    pub fn congestion_state(&self) -> CongestionState {
        match self.phase {
            Phase::Recovery => CongestionState::Recovery,
            Phase::Timeout => CongestionState::Loss,
            Phase::Reducing => CongestionState::Cwr,
            Phase::Open if self.ecn_recover > self.snd_una => CongestionState::Cwr,
            Phase::Open if self.duplicate_acks > 0 => CongestionState::Disorder,
            Phase::Open => CongestionState::Open,
        }
    }

    /// Bytes thought to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.outstanding.pipe(self.snd_nxt - self.snd_una)
    }

    /// Mean deviation of the round-trip time, once measured.
    pub fn rttvar(&self) -> Option<Span> {
        self.rtt.rttvar()
    }

    /// Retransmission timeout, with its back-off.
    pub fn rto(&self, config: &Config) -> Span {
        self.rtt.rto(config)
    }

    /// Whether there is something to send that the peer's window does not let out.
    pub fn is_held_by_receiver(&self, config: &Config) -> bool {
        let in_flight = self.snd_nxt - self.snd_una;
        self.next_new(config).is_some_and(|(len, _)| in_flight + u64::from(len) > self.peer_window)
    }
}
