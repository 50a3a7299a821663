//! This file samples at intervals what the kernel says of sending connections: congestion window, round-trip time and
//! more.

use super::Hosts;
use super::connections::{Connection, Token};
use super::sockets::TcpInfo;
use super::timers::Due;
use crate::news::News;
use base::{Span, Time};
use record::TcpRow;
use scenario::Scenario;

/// Most connections of a block that are looked at at a time: those that came first.
const MOST: u32 = 64;
/// The shortest distance between two looks.
const SHORTEST: Span = Span::from_ms(100);

/// Which connections are looked at.
pub struct Samples {
    interval: Span,
    /// How many of each block.
    counts: Vec<u32>,
    tokens: Vec<Token>,
}

impl Samples {
    /// None, of the blocks of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let interval = scenario.record.flows.unwrap_or(scenario.record.interval).max(SHORTEST);
        Self { interval, counts: vec![0; scenario.traffic.len()], tokens: Vec::new() }
    }

    /// When they are looked at first.
    pub fn first_at(&self) -> Time {
        Time::ZERO + self.interval
    }

    /// A connection of a block is open whose end here sends.
    pub fn begin(&mut self, connection: &mut Connection, token: Token) {
        if let Some(count) = self.counts.get_mut(usize::from(connection.block)).filter(|count| **count < MOST) {
            *count += 1;
            connection.is_sampled = true;
            self.tokens.push(token);
        }
    }

    /// A connection is over.
    pub fn forget(&mut self, connection: &Connection) {
        if connection.is_sampled {
            self.counts[usize::from(connection.block)] -= 1;
        }
    }
}

impl Hosts<'_> {
    /// Looks at all of them.
    pub(super) fn sample(&mut self) {
        let now = self.now;
        self.timers.push(now + self.samples.interval, Due::Sample);
        let (connections, news) = (&mut self.connections, &self.wiring.news);
        let span = |us: u32| Span::from_us(u64::from(us));
        self.samples.tokens.retain(|&token| {
            let Some(connection) = connections.get(token) else { return false };
            let Some(info) = TcpInfo::of(&connection.socket) else { return true };
            let has_ssthresh = info.ssthresh < TcpInfo::NO_SSTHRESH;
            let has_rtt = info.rtt_us > 0;
            let row = TcpRow {
                time: now,
                traffic: connection.block,
                source: connection.number,
                side: self.side,
                state: info.state,
                congestion_state: info.congestion_state,
                cwnd_segments: info.cwnd,
                ssthresh_segments: has_ssthresh.then_some(f64::from(info.ssthresh)),
                in_flight_segments: info.in_flight,
                srtt: has_rtt.then(|| span(info.rtt_us)),
                rttvar: has_rtt.then(|| span(info.rttvar_us)),
                rto: span(info.rto_us),
                pacing_rate_bps: (info.pacing_rate < u64::MAX).then_some(info.pacing_rate as f64 * 8.0),
                acknowledged_bytes: info.acknowledged,
                retransmitted_segments: info.retransmitted,
                delivered_segments: info.delivered,
                delivered_ce_segments: Some(f64::from(info.delivered_ce)),
            };
            // Where nobody hears any more, the run is being broken off.
            let _ = news.send(News::Tcp(row));
            true
        });
    }
}
