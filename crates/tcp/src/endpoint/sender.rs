//! The sending half: acknowledgements, loss recovery, the retransmission timer, what may be sent.
//!
//! Losses are found by three duplicate acknowledgements (RFC 5681), by three segments reported above a hole
//! (RFC 6675 §4), or by the timer. Whatever is deemed lost waits in [`Outstanding`](crate::outstanding::Outstanding)
//! and is sent again as the window allows; after a timeout that is everything not reported received, which is
//! go-back-N where the receiver reports nothing.
//!
//! # Deviations
//! - RFC 6582: every partial acknowledgement restarts the timer, not the first alone ("slow but steady" of its §4, as
//!   BSD does).
//! - RFC 6675: a segment is lost when three segments above it are reported, bytes are not looked at; nothing that is
//!   not deemed lost is sent again (no rules 3 and 4 of `NextSeg`), so that a loss among the last three segments of a
//!   recovery waits for the timer. What was reported stays known after a timeout, for receivers here never take it
//!   back.
//! - RFC 6298: fast retransmit restarts the timer, as BSD and Linux do. Where every acknowledgement is measured, one of
//!   new data ends the back-off, as if timestamps told the retransmission from the original.
//! - RFC 5681 §3.1: no more than the window counts as FlightSize, so that a second reduction, or a timeout in the midst
//!   of repairs, does not take what is deemed lost for what is in the network.
//! - No RACK-TLP, PRR, F-RTO or undo of spurious retransmissions.

use super::{Emit, Endpoint, Phase, State};
use crate::cc::{Acked, Controller};
use crate::segment::{Flags, Segment};
use crate::stack::{Config, Recovery, RttSampling};
use base::{Ecn, Time};

/// Duplicate acknowledgements, or segments reported above a hole, that make a loss.
const DUP_THRESH: u32 = 3;
/// Retransmissions of one segment by the timer, after which the connection is given up (RFC 1122 §4.2.3.5, R2; BSD's
/// TCP_MAXRXTSHIFT).
const MOST_TIMEOUTS: u32 = 12;

impl Endpoint {
    /// Takes the acknowledgement in `segment`. Returns whether something may be sent now.
    pub(super) fn on_ack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) -> bool {
        if segment.ack > self.snd_nxt {
            return false;
        }
        // RFC 9293 §3.10.7.4: an acknowledgement that was overtaken says nothing about the window.
        let is_update = segment.ack >= self.snd_una && self.peer_window != u64::from(segment.window);
        if is_update {
            self.peer_window = u64::from(segment.window);
        }
        let news = if segment.sacks.is_empty() { 0 } else { self.outstanding.selective(&segment.sacks, segment.ack) };
        if segment.ack > self.snd_una {
            self.on_new_ack(segment, config, now, out);
        } else if segment.ack == self.snd_una
            && self.snd_nxt > self.snd_una
            && if config.recovery == Recovery::Sack {
                // RFC 6675 §2: news of what arrived, on whatever it rides.
                news > 0
            } else {
                // RFC 5681 §2
                segment.payload == 0 && !segment.flags.has(Flags::FIN) && !is_update
            }
        {
            self.on_duplicate_ack(config, now, out);
        } else if news == 0 && !is_update {
            return false;
        }
        if self.ecn_ok && segment.flags.has(Flags::ECE) {
            self.on_ecn_echo(config, now);
        }
        true
    }

    fn on_new_ack(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        let ack = segment.ack;
        let bytes = ack - self.snd_una;
        let flight = (self.snd_nxt - self.snd_una) as f64;
        let sent_at = self.outstanding.acknowledge(ack);
        self.snd_una = ack;
        self.duplicate_acks = 0;
        match config.rtt_sampling {
            RttSampling::EveryAck => {
                self.rtt.end_back_off();
                if let Some(sent_at) = sent_at {
                    self.rtt.sample(now.since(sent_at), config);
                }
            }
            RttSampling::OnePerWindow => {
                if let Some((end, sent_at)) = self.timing
                    && ack >= end
                {
                    self.timing = None;
                    self.rtt.sample(now.since(sent_at), config);
                }
            }
        }
        let mss = f64::from(config.mss);
        if self.phase == Phase::Recovery {
            self.on_ack_in_recovery(bytes as f64, config, now, out);
        } else {
            // RFC 3465 §2.3: after a timeout much of what is acknowledged had left the network before; no more than
            // a segment of it counts.
            let counted = if self.phase == Phase::Timeout { bytes.min(config.mss.into()) } else { bytes };
            if self.phase == Phase::Timeout && ack >= self.recover {
                self.phase = Phase::Open;
            }
            if self.has_new_sacked_losses(config) && self.phase == Phase::Open {
                self.enter_recovery(config, now, out);
            } else if !config.cwnd_validation || self.is_window_used(flight, mss) {
                let srtt = self.rtt.srtt();
                let acked = Acked { bytes: counted, mss, byte_counting: config.byte_counting, srtt, now };
                // An ACK that echoes congestion does not open the window (RFC 3168 §6.1.2).
                if !(self.ecn_ok && segment.flags.has(Flags::ECE)) {
                    self.controller.grow(&mut self.window, &acked);
                    self.window.cwnd = self.window.cwnd.min(config.window.max(config.mss.into()) as f64);
                }
            }
        }
        self.rto_at = if self.snd_una == self.snd_nxt { Time::NEVER } else { now + self.rtt.rto(config) };
    }

    /// Whether the window, not the application, limited what was sent (RFC 7661 in the form Linux has it): there was
    /// no room for another segment.
    fn is_window_used(&self, flight: f64, mss: f64) -> bool {
        let is_full = flight + mss > self.window.cwnd;
        is_full || self.window.in_slow_start() && self.window.cwnd < 2.0 * flight
    }

    fn has_new_sacked_losses(&mut self, config: &Config) -> bool {
        if config.recovery != Recovery::Sack || !self.outstanding.has_sacked() {
            return false;
        }
        self.outstanding.detect_losses();
        self.outstanding.is_front_lost()
    }

    /// An acknowledgement of new data during fast recovery.
    fn on_ack_in_recovery(&mut self, bytes: f64, config: &Config, now: Time, out: &mut impl Emit) {
        let mss = f64::from(config.mss);
        let is_full = self.snd_una >= self.recover;
        if is_full || config.recovery == Recovery::Reno {
            self.phase = Phase::Open;
            let flight = (self.snd_nxt - self.snd_una) as f64;
            self.window.cwnd = match config.recovery {
                Recovery::Sack => self.window.ssthresh,
                // RFC 6582 §3.2 step 3, the choice that avoids a burst
                Recovery::NewReno => self.window.ssthresh.min(flight.max(mss) + mss),
                Recovery::Reno => self.window.ssthresh,
            };
            return;
        }
        match config.recovery {
            Recovery::Sack => self.outstanding.detect_losses(),
            Recovery::NewReno | Recovery::Reno => {
                // RFC 6582 §3.2 step 3, partial acknowledgement: the next hole goes out at once, and the window
                // deflates by what was acknowledged less one segment.
                self.outstanding.lose_front();
                self.resend_next(config, now, out);
                self.window.cwnd -= bytes;
                if bytes >= mss {
                    self.window.cwnd += mss;
                }
                self.window.cwnd = self.window.cwnd.max(mss);
            }
        }
    }

    fn on_duplicate_ack(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.duplicate_acks += 1;
        match (self.phase, config.recovery) {
            (Phase::Timeout, _) => {}
            (Phase::Recovery, Recovery::Sack) => self.outstanding.detect_losses(),
            // Each duplicate says that a segment left the network.
            (Phase::Recovery, _) => self.window.cwnd += f64::from(config.mss),
            (Phase::Open, Recovery::Sack) => {
                self.outstanding.detect_losses();
                let is_lost = self.duplicate_acks >= DUP_THRESH || self.outstanding.is_front_lost();
                if is_lost && self.snd_una >= self.recover {
                    self.enter_recovery(config, now, out);
                }
            }
            (Phase::Open, Recovery::Reno | Recovery::NewReno) => {
                // RFC 6582 §3.2 step 2: not again for the window of the last loss. Reno knows no such window.
                let is_new = config.recovery == Recovery::Reno || self.snd_una > self.recover;
                if self.duplicate_acks == DUP_THRESH && is_new {
                    self.enter_recovery(config, now, out);
                    self.window.cwnd += f64::from(DUP_THRESH * config.mss);
                }
            }
        }
    }

    fn enter_recovery(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.stats.recoveries += 1;
        self.phase = Phase::Recovery;
        // A reduction by ECN in the same window was for the same congestion (RFC 3168 §6.1.2).
        if self.snd_una >= self.ecn_recover {
            self.reduce(self.flight(), config, now);
        } else {
            self.window.cwnd = self.window.ssthresh;
        }
        self.recover = self.snd_nxt;
        self.timing = None;
        self.outstanding.lose_front();
        self.resend_next(config, now, out);
        self.rto_at = now + self.rtt.rto(config);
    }

    /// What is outstanding, without what limited transmit sent beyond the window (RFC 5681 §3.2).
    fn flight(&self) -> f64 {
        ((self.snd_nxt - self.snd_una) as f64).min(self.window.cwnd)
    }

    /// Congestion met `flight` bytes. Returns what the controller leaves of them; the threshold, and the window with
    /// it, stays at two segments at least (RFC 5681 (4)).
    fn reduce(&mut self, flight: f64, config: &Config, now: Time) -> f64 {
        let mss = f64::from(config.mss);
        let left = self.controller.reduced(&self.window, flight, mss, now);
        self.window.ssthresh = left.max(2.0 * mss);
        self.window.cwnd = self.window.ssthresh;
        // RFC 3168 §6.1.2: the peer is told of every reduction, whatever its cause.
        self.owes_cwr = self.ecn_ok;
        left
    }

    fn on_ecn_echo(&mut self, config: &Config, now: Time) {
        // RFC 3168 §6.1.2: once a window, and not for a window that a loss has reduced already.
        // An acknowledgement of exactly that window may have been sent before the CWR arrived.
        if self.phase != Phase::Open || self.snd_una <= self.ecn_recover || self.snd_una <= self.recover {
            return;
        }
        self.stats.ecn_reductions += 1;
        let mss = f64::from(config.mss);
        let floor = f64::from(config.ecn_floor) * mss;
        if self.window.cwnd <= mss && config.ecn_floor == 1 {
            self.held_until = now + self.rtt.rto(config);
        }
        // Half the window itself, not of what is outstanding: the echo may have acknowledged all of that.
        self.window.cwnd = self.reduce(self.window.cwnd, config, now).max(floor);
        self.ecn_recover = self.snd_nxt;
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.snd_una == self.snd_nxt {
            self.rto_at = Time::NEVER;
            return;
        }
        self.stats.timeouts += 1;
        let is_first = self.timed_out_at != self.snd_una;
        self.timed_out_at = self.snd_una;
        self.expirations = if is_first { 1 } else { self.expirations + 1 };
        if self.expirations > MOST_TIMEOUTS {
            self.state = State::Aborted;
            self.rto_at = Time::NEVER;
            self.delayed_ack_at = Time::NEVER;
            return;
        }
        if is_first {
            // RFC 5681 §3.1: the threshold is set when the timer first expires for a segment.
            self.reduce(self.flight(), config, now);
            self.controller.timed_out();
        }
        self.window.cwnd = f64::from(config.mss);
        self.held_until = Time::NEVER;
        self.rtt.back_off();
        self.phase = Phase::Timeout;
        self.recover = self.snd_nxt;
        self.timing = None;
        self.duplicate_acks = 0;
        self.outstanding.lose_all();
        self.resend_next(config, now, out);
        self.rto_at = now + self.rtt.rto(config);
        self.push(config, now, out);
    }

    /// Sends what may be sent: first what is lost, then what is new.
    pub fn push(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.state != State::Established || self.held_until.is_set() {
            return;
        }
        let mss = u64::from(config.mss);
        if config.idle_restart && self.snd_una == self.snd_nxt && now.since(self.last_sent_at) > self.rtt.rto(config) {
            // RFC 5681 §4.1
            self.window.cwnd = self.window.cwnd.min((u64::from(config.initial_window) * mss) as f64);
        }
        // Limited transmit (RFC 3042): one new segment for each of the first two duplicates. With SACK the pipe has
        // already been relieved of what they report.
        let is_early = self.phase == Phase::Open && self.duplicate_acks > 0 && self.duplicate_acks < DUP_THRESH;
        let extra = match (is_early, config.limited_transmit, config.recovery) {
            (true, true, Recovery::Reno | Recovery::NewReno) => u64::from(self.duplicate_acks) * mss,
            _ => 0,
        };
        let cwnd = self.window.cwnd as u64 + extra;
        loop {
            let in_flight = self.snd_nxt - self.snd_una;
            let pipe = if is_early && !config.limited_transmit { in_flight } else { self.outstanding.pipe(in_flight) };
            if self.phase != Phase::Open
                && let Some(record) = self.outstanding.next_lost()
            {
                // A FIN takes no room.
                if pipe + u64::from(record.len - u32::from(record.fin)) > cwnd {
                    return;
                }
                self.resend_next(config, now, out);
                continue;
            }
            let unsent = self.written.saturating_sub(self.snd_nxt);
            let len = unsent.min(mss);
            let has_fin = self.closing && !self.fin_sent && len == unsent;
            if len == 0 && !has_fin {
                return;
            }
            if pipe + len > cwnd || in_flight + len > self.peer_window {
                return;
            }
            self.send_new(len as u32, has_fin, config, now, out);
        }
    }

    #[inline]
    fn send_new(&mut self, len: u32, has_fin: bool, config: &Config, now: Time, out: &mut impl Emit) {
        let seq = self.snd_nxt;
        let mut flags = Flags::NONE.with_if(Flags::FIN, has_fin);
        if self.owes_cwr && len > 0 {
            flags = flags.with(Flags::CWR);
            self.owes_cwr = false;
        }
        // RFC 3168 §6.1.4: data is ECN-capable, a FIN alone is a pure ACK.
        let ecn = if self.ecn_ok && len > 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let sequence_len = len + u32::from(has_fin);
        self.fin_sent |= has_fin;
        self.snd_nxt += u64::from(sequence_len);
        self.outstanding.push(seq, sequence_len, has_fin, now);
        self.stats.segments += 1;
        if self.timing.is_none() && config.rtt_sampling == RttSampling::OnePerWindow {
            self.timing = Some((self.snd_nxt, now));
        }
        if !self.rto_at.is_set() {
            self.rto_at = now + self.rtt.rto(config);
        }
        self.last_sent_at = now;
        let segment = self.segment(seq, len, flags, ecn, config);
        out.emit(segment);
    }

    /// Sends the next lost segment again.
    fn resend_next(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let Some(record) = self.outstanding.next_lost() else { return };
        self.outstanding.resent(now);
        self.stats.retransmitted += 1;
        if let Some((end, _)) = self.timing
            && end >= record.end()
        {
            // Karn: its acknowledgement would be ambiguous.
            self.timing = None;
        }
        self.last_sent_at = now;
        let ecn = if self.ecn_ok && config.ect_on_retransmit { Ecn::Ect0 } else { Ecn::NotEct };
        let flags = Flags::NONE.with_if(Flags::FIN, record.fin);
        let segment = self.segment(record.seq, record.len - u32::from(record.fin), flags, ecn, config);
        out.emit(segment);
    }
}
