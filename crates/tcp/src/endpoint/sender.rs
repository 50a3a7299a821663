//! The sending half: acknowledgements, loss recovery, the retransmission timer, what may be sent.
//!
//! Losses are found by three duplicate acknowledgements (RFC 5681), by three segments reported above a hole
//! (RFC 6675 §4), by time (`probe.rs`), or by the timer. Whatever is deemed lost waits in
//! [`Outstanding`](crate::outstanding::Outstanding) and is sent again as the window allows; after a timeout that is
//! everything not reported received, which is go-back-N where the receiver reports nothing. ns-2's own way of doing all
//! that is `sack1.rs` and `newreno.rs`.
//!
//! # Deviations
//! - RFC 6582: every partial acknowledgement restarts the timer, not the first alone ("slow but steady" of its §4, as
//!   BSD does).
//! - RFC 6675: a segment is lost when three segments above it are reported, bytes are not looked at; nothing that is
//!   not deemed lost is sent again (no rules 3 and 4 of `NextSeg`), so that a loss among the last three segments of a
//!   recovery waits for the timer. What was reported stays known after a timeout, for receivers here never take it
//!   back.
//! - RFC 6298: fast retransmit restarts the timer, as BSD and Linux do. Where every acknowledgement is measured, one of
//!   new data ends the back-off, with timestamps or without.
//! - RFC 5681 §3.1: no more than the window counts as FlightSize, so that a second reduction, or a timeout in the midst
//!   of repairs, does not take what is deemed lost for what is in the network. Where the window comes down gradually,
//!   the whole of it counts, as in Linux.

use super::pacing::Told;
use super::{Emit, Endpoint, Phase, State, Timing};
use crate::cc::{Acked, Cause, Delivery};
use crate::outstanding::Record;
use crate::rack::Rack;
use crate::segment::{Flags, Segment};
use crate::stack::{Config, Repair, RttSampling};
use base::{Span, Time};

/// Duplicate acknowledgements, or segments reported above a hole, that make a loss.
const DUP_THRESH: u32 = 3;
/// Retransmissions of one segment by the timer, after which the connection is given up (RFC 1122 §4.2.3.5, R2; BSD's
/// TCP_MAXRXTSHIFT).
const MOST_TIMEOUTS: u32 = 12;

/// What an acknowledgement told.
struct Arrived {
    /// Bytes of which it is news that they arrived, acknowledged, reported or both; and whether any were reported.
    delivered: u64,
    has_reports: bool,
    /// The same, of segments that all count as full ones.
    segments_bytes: u64,
    /// When the newest of what it acknowledges was sent, if that tells a round trip.
    sent_at: Option<Time>,
}

/// What may be sent.
pub(super) enum Due {
    /// What is lost.
    Again,
    /// New data of this length, and whether the FIN rides on it.
    New(u32, bool),
}

/// What a segment takes of the congestion window: its payload, and a FIN alone as much as a full one or nothing.
#[inline]
fn room_of(payload: u32, config: &Config) -> u64 {
    u64::from(if payload == 0 && config.fin_takes_room { config.mss } else { payload })
}

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
        if self.is_sack1 && (self.sack1_is_busy || !segment.sacks.is_empty()) {
            return self.on_ack_sack1(segment, config, now, out);
        }
        let (mut reported, ever_lost) = (0, self.outstanding.ever_lost_bytes());
        let prior_pipe = self.outstanding.pipe(self.snd_nxt - self.snd_una);
        if self.counts_deliveries {
            self.outstanding.begin(now, Self::echo_of(segment, config));
            reported = self.outstanding.sacked_bytes();
        }
        let news = if segment.sacks.is_empty() { 0 } else { self.outstanding.selective(&segment.sacks, segment.ack) };
        let bytes = segment.ack.saturating_sub(self.snd_una);
        let mut twice = 0;
        if self.counts_deliveries
            && let Some((start, end)) = segment.sacks.duplicate(segment.ack)
        {
            twice = self.note_twice(start, end, config);
        }
        let records = self.outstanding.len();
        let sent_at = if bytes > 0 { self.outstanding.acknowledge(segment.ack) } else { None };
        let (mss, records) = (u64::from(config.mss), (records - self.outstanding.len()) as u32);
        let (mut delivered, mut segments_bytes) = (bytes, mss * u64::from(records));
        if self.counts_deliveries {
            let sacked = self.outstanding.sacked_bytes();
            delivered = bytes + sacked - reported + twice;
            if self.counts_duplicates && bytes > 0 {
                delivered = self.count_acknowledged(segment.ack, records, config);
                segments_bytes = delivered;
            } else if reported + sacked + twice > 0 {
                segments_bytes = delivered.div_ceil(mss) * mss;
            }
            let rtt = sent_at.map(|sent_at| now.since(sent_at));
            self.on_delivery(segment, delivered, rtt, config, now);
            self.outstanding.tell_rack(Rack::adapt);
        }
        let is_update = self.counts_duplicates && self.is_first_after_data(segment) || is_update;
        let is_duplicate = segment.ack == self.snd_una
            && self.snd_nxt > self.snd_una
            && if config.repair.has_sack() {
                // RFC 6675 §2: news of what arrived, on whatever it rides.
                news > 0
            } else {
                // RFC 5681 §2
                segment.payload == 0 && !segment.flags.has(Flags::FIN) && !is_update
            };
        let mut is_undone = false;
        if self.undoing.is_some() {
            if self.feedback.hears(segment) {
                self.forbid_undoing();
            }
            if bytes == 0 && self.phase == Phase::Timeout {
                let is_news = news > 0 || self.counts_duplicates && is_duplicate;
                self.judge_timeout(segment, false, is_news, config, now);
            }
            is_undone = self.undo_twice(config);
        }
        if self.flow.is_some() {
            self.hear_of_room(config);
        }
        if bytes > 0 {
            let arrived = Arrived { delivered, has_reports: news > 0, segments_bytes, sent_at };
            self.on_new_ack(segment, &arrived, config, now, out);
        } else if is_duplicate {
            if self.counts_duplicates {
                self.duplicate_acks += 1;
                delivered = self.on_counted_duplicate(config, now, out);
            } else {
                self.measure_report(config, now);
                self.on_duplicate_ack(config, now, out);
            }
        } else if is_undone {
            // What is lost all the same begins a recovery of its own.
            self.find_losses(config, now);
            if self.has_loss() {
                self.enter_recovery(config, now, out);
            }
        } else if news == 0 && !is_update {
            return false;
        }
        if self.feedback.hears(segment) {
            self.on_ecn_echo(config, now);
            // A recovery that begins with an echo is due.
            self.forbid_undoing();
        }
        if self.is_gradual && self.is_reducing() {
            let goes_well = bytes > 0 && self.outstanding.ever_lost_bytes() == ever_lost;
            self.reduce_by(delivered, goes_well, config);
        }
        if self.pacer.is_some() {
            self.steer(&Told { prior_pipe, ever_lost, bytes }, config, now);
        }
        true
    }

    /// An acknowledgement tells of `delivered` bytes more that arrived, the newest of them after `rtt`.
    pub(super) fn on_delivery(
        &mut self,
        segment: &Segment,
        delivered: u64,
        rtt: Option<Span>,
        config: &Config,
        now: Time,
    ) {
        if self.controller.watches() {
            let delivery = Delivery {
                bytes: delivered,
                is_marked: self.feedback.hears(segment),
                una: self.snd_una.max(segment.ack),
                nxt: self.snd_nxt,
                rtt,
                mss: f64::from(config.mss),
                now,
            };
            self.controller.delivered(&mut self.window, &delivery);
        }
        if self.probe_end.is_some() {
            let is_duplicate = delivered == 0 && segment.payload == 0;
            self.settle_probe(segment.ack, is_duplicate, config, now);
        }
    }

    /// New data was acknowledged.
    fn on_new_ack(&mut self, segment: &Segment, arrived: &Arrived, config: &Config, now: Time, out: &mut impl Emit) {
        let Arrived { delivered, has_reports, segments_bytes, sent_at } = *arrived;
        let ack = segment.ack;
        let bytes = ack - self.snd_una;
        self.snd_una = ack;
        self.duplicate_acks = 0;
        let has_time = self.finds_by_time || self.counts_duplicates;
        let sent_at = if has_time { self.sampled_at(segment, config, now) } else { sent_at };
        self.measure(ack, sent_at, config, now);
        let mss = f64::from(config.mss);
        if self.is_gradual {
            // Linux ends a recovery when all is acknowledged that was outstanding at its start, the wait for an echo's
            // end when something sent since is; either acknowledgement opens the window again.
            let is_over = match self.phase {
                Phase::Recovery => ack >= self.repaired_at(),
                Phase::Reducing => ack > self.ecn_recover,
                Phase::Open | Phase::Timeout => false,
            };
            if is_over && !(self.phase == Phase::Recovery && self.undo_whole(segment, config, now)) {
                self.end_reduction();
            }
        }
        if self.undoing.is_some() {
            self.only_new = match self.phase {
                Phase::Timeout => self.judge_timeout(segment, true, has_reports, config, now),
                Phase::Recovery if ack < self.recover => self.undo_partly(segment, config, now),
                _ => false,
            };
        }
        if self.only_new && self.phase == Phase::Recovery {
            // What was missing is late: nothing more is deemed lost for now.
        } else if self.phase == Phase::Recovery {
            if self.snd_una >= self.recover && self.undo_whole(segment, config, now) {
                return self.after_new_ack(config, now);
            }
            if self.counts_duplicates {
                self.lose_next();
            } else {
                self.on_ack_in_recovery(bytes as f64, config, now, out);
            }
            if self.is_newreno && self.after_newreno_ack(segment, bytes, config, now) {
                return;
            }
        } else if self.phase == Phase::Reducing {
            if self.has_new_sacked_losses(config, now) {
                self.enter_recovery(config, now, out);
            }
        } else {
            // RFC 3465 §2.3: after a timeout much of what is acknowledged had left the network before; no more than
            // a segment of it counts.
            let counted = match self.phase {
                _ if self.is_gradual && config.whole_segments => segments_bytes,
                _ if self.is_gradual => delivered,
                Phase::Timeout => bytes.min(config.mss.into()),
                _ => bytes,
            };
            if self.phase == Phase::Timeout && ack >= self.repaired_at() {
                self.undo_whole(segment, config, now);
                self.phase = Phase::Open;
            }
            if self.has_new_sacked_losses(config, now) && self.phase == Phase::Open {
                self.enter_recovery(config, now, out);
            } else if !self.is_modelled && (!config.cwnd_validation || self.is_window_used()) {
                let srtt = self.rtt.srtt();
                let acked = Acked {
                    bytes: counted,
                    mss,
                    byte_counting: config.byte_counting,
                    whole_segments: config.whole_segments,
                    srtt,
                    now,
                };
                // An ACK that echoes congestion does not open the window (RFC 3168 §6.1.2).
                if !self.feedback.hears(segment) {
                    self.controller.grow(&mut self.window, &acked);
                    self.window.cwnd = self.window.cwnd.min(config.window.max(config.mss.into()) as f64);
                }
            }
        }
        self.after_new_ack(config, now);
    }

    fn after_new_ack(&mut self, config: &Config, now: Time) {
        self.rto_at = if self.snd_una == self.snd_nxt { Time::NEVER } else { config.timer(now, self.rtt.rto(config)) };
        self.wants_probe = self.finds_by_time;
    }

    /// Takes the round trip that the acknowledgement of everything before `ack` tells; the newest of it was sent at
    /// `sent_at`, if that tells one.
    #[inline]
    pub(super) fn measure(&mut self, ack: u64, sent_at: Option<Time>, config: &Config, now: Time) {
        match config.rtt_sampling {
            RttSampling::EveryAck => {
                self.rtt.end_back_off();
                if let Some(sent_at) = sent_at {
                    self.rtt.sample(now.since(sent_at), ack, self.snd_nxt, config);
                }
            }
            RttSampling::OnePerWindow => {
                if ack >= self.timing.end {
                    let sent_at = self.timing.sent_at;
                    self.timing = Timing::NONE;
                    self.rtt.sample(now.since(sent_at), ack, self.snd_nxt, config);
                }
            }
        }
    }

    fn has_new_sacked_losses(&mut self, config: &Config, now: Time) -> bool {
        let outstanding = &self.outstanding;
        let may_miss = outstanding.has_sacked() || outstanding.has_resent() || outstanding.has_lost();
        if !config.repair.has_sack() || !may_miss {
            return false;
        }
        self.find_losses(config, now);
        self.has_loss()
    }

    /// Whether recovery is due: the first segment is lost, or any where losses are found by time.
    fn has_loss(&self) -> bool {
        if self.finds_by_time { self.outstanding.has_lost() } else { self.outstanding.is_front_lost() }
    }

    /// An acknowledgement of new data during fast recovery.
    fn on_ack_in_recovery(&mut self, bytes: f64, config: &Config, now: Time, out: &mut impl Emit) {
        let mss = f64::from(config.mss);
        let is_full = self.snd_una >= self.recover;
        if is_full || config.repair == Repair::Reno {
            self.phase = Phase::Open;
            let flight = (self.snd_nxt - self.snd_una) as f64;
            self.window.cwnd = match config.repair {
                Repair::Ns2NewReno => self.window.cwnd.min(self.sack1().left),
                // RFC 6582 §3.2 step 3, the choice that avoids a burst
                Repair::NewReno => self.window.ssthresh.min(flight.max(mss) + mss),
                Repair::Reno | Repair::Sack | Repair::Rack | Repair::Ns2Sack1 => self.window.ssthresh,
            };
            return;
        }
        if config.repair.has_sack() {
            return self.find_losses(config, now);
        }
        // RFC 6582 §3.2 step 3, partial acknowledgement: the next hole goes out at once, and the window deflates by
        // what was acknowledged less one segment.
        self.outstanding.lose_front();
        self.resend_next(config, now, out);
        self.window.cwnd -= bytes;
        if bytes >= mss {
            self.window.cwnd += mss;
        }
        self.window.cwnd = self.window.cwnd.max(mss);
    }

    fn on_duplicate_ack(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.duplicate_acks += 1;
        match (self.phase, config.repair.has_sack()) {
            (Phase::Timeout, true) if self.finds_by_time => self.find_losses(config, now),
            (Phase::Timeout, _) => {}
            (Phase::Recovery, true) => self.find_losses(config, now),
            // Each duplicate says that a segment left the network.
            (Phase::Recovery, false) => self.window.cwnd += f64::from(config.mss),
            (Phase::Open | Phase::Reducing, true) => {
                self.find_losses(config, now);
                self.probe_at = Time::NEVER;
                let by_count = self.duplicate_acks >= DUP_THRESH && !self.finds_by_time;
                let is_lost = by_count || self.has_loss();
                // Losses found by time are new ones, also after a reduction was taken back in the midst of its window
                // (tcp_time_to_recover).
                if is_lost && (self.finds_by_time || self.snd_una >= self.recover) {
                    self.enter_recovery(config, now, out);
                }
            }
            (Phase::Open | Phase::Reducing, false) => {
                // RFC 6582 §3.2 step 2: not again for the window of the last loss. Reno knows no such window.
                let is_new = config.repair == Repair::Reno || self.snd_una > self.recover;
                if self.duplicate_acks == DUP_THRESH && is_new {
                    self.enter_recovery(config, now, out);
                    self.window.cwnd += f64::from(DUP_THRESH * config.mss);
                }
            }
        }
    }

    pub(super) fn enter_recovery(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.stats.recoveries += 1;
        if self.is_gradual {
            self.enter_recovery_gradually(config, now);
            return;
        }
        self.begin_undoing(self.window_before(), config);
        self.phase = Phase::Recovery;
        // A reduction by ECN in the same window was for the same congestion (RFC 3168 §6.1.2); DCTCP's may have been
        // next to nothing (RFC 8257 §3.4).
        if self.is_newreno {
            self.reduce_newreno(config, now);
        } else if self.snd_una >= self.ecn_recover || config.control.echoes_each_mark() {
            self.reduce(Cause::Loss, self.flight(), config, now);
        } else {
            self.window.cwnd = self.window.ssthresh;
        }
        self.recover = self.snd_nxt;
        self.has_rescued = false;
        self.timing = Timing::NONE;
        if !self.finds_by_time {
            self.outstanding.lose_front();
        }
        self.resend_next(config, now, out);
        self.rto_at = config.timer(now, self.rtt.rto(config));
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
            return self.give_up();
        }
        if self.is_sack1 {
            self.on_timeout_sack1(config, now, out);
            return;
        }
        self.begin_frto(self.phase == Phase::Recovery || self.phase == Phase::Timeout, is_first, config);
        if is_first && !self.is_reducing() {
            self.begin_undoing(self.window_before(), config);
        }
        if self.is_gradual {
            // Not again where the window is coming down already.
            if !self.is_reducing() && is_first {
                self.begin_reduction(Cause::Loss, config, now);
            }
            self.feedback.owe_cwr();
            self.controller.timed_out();
        } else if self.is_newreno {
            self.slow_down_newreno(config, now);
            self.controller.timed_out();
        } else if is_first {
            // RFC 5681 §3.1: the threshold is set when the timer first expires for a segment.
            self.reduce(Cause::Loss, self.flight(), config, now);
            self.controller.timed_out();
        }
        self.window.cwnd = f64::from(config.mss);
        (self.held_until, self.probe_at, self.reorder_at) = (Time::NEVER, Time::NEVER, Time::NEVER);
        self.probe_end = None;
        self.rtt.back_off(config);
        self.phase = Phase::Timeout;
        self.recover = self.snd_nxt;
        self.timing = Timing::NONE;
        self.duplicate_acks = 0;
        if self.finds_by_time {
            self.outstanding.lose_old(now);
            // What may be on its way yet counts (tcp_enter_loss).
            self.window.cwnd += self.outstanding.pipe(self.snd_nxt - self.snd_una) as f64;
        } else {
            self.forget_duplicates(config);
            self.outstanding.lose_all();
        }
        self.resend_next(config, now, out);
        self.rto_at = config.timer(now, self.rtt.rto(config));
        self.push(config, now, out);
    }

    /// Sends what may be sent.
    #[inline]
    pub fn push(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.state != State::Established || self.held_until.is_set() {
            self.call_off_departure();
            return;
        }
        let before = self.snd_nxt;
        self.fill_window(config, now, out);
        if config.cwnd_validation {
            self.note_use(before, config);
        }
        if self.only_new {
            self.only_new = false;
            if self.phase == Phase::Timeout && self.snd_nxt <= self.recover {
                self.end_frto();
                self.fill_window(config, now, out);
            }
        }
        if self.wants_probe {
            self.wants_probe = false;
            self.schedule_probe(config, now);
        }
    }

    /// Sends first what is lost, then what is new.
    fn fill_window(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if config.idle_restart
            && self.snd_una == self.snd_nxt
            && !self.is_modelled
            && now.since(self.last_sent_at) > self.rtt.rto(config)
        {
            self.restart_after_idle(config, now);
        }
        if self.sack1_is_busy {
            self.call_off_departure();
            self.fill_window_sack1(config, now, out);
            return;
        }
        if self.pacer.is_some() {
            self.fill_paced(config, now, out);
        } else {
            self.fill(u64::MAX, config, now, out);
        }
    }

    /// Sends `most` segments of that; returns how many it were.
    pub(super) fn fill(&mut self, most: u64, config: &Config, now: Time, out: &mut impl Emit) -> u64 {
        for sent in 0..most {
            match self.due(config) {
                Some(Due::Again) => self.resend_next(config, now, out),
                Some(Due::New(len, has_fin)) => {
                    self.ends_burst = most > 1 && sent + 1 == most;
                    self.send_new(len, has_fin, config, now, out);
                    self.ends_burst = false;
                }
                None => {
                    if self.snd_una == self.snd_nxt {
                        self.ask_for_room(config, now);
                    } else if self.phase == Phase::Recovery
                        && self.next_new(config).is_none()
                        && self.outstanding.next_lost().is_none()
                    {
                        self.rescue(config, now, out);
                    }
                    return sent;
                }
            }
        }
        most
    }

    /// What the windows let out now: first what is lost, then what is new.
    #[inline(always)]
    pub(super) fn due(&mut self, config: &Config) -> Option<Due> {
        // Limited transmit (RFC 3042): one new segment for each of the first two duplicates. With SACK the pipe has
        // already been relieved of what they report.
        let may_be_early = self.phase == Phase::Open || self.phase == Phase::Timeout && self.is_newreno;
        let is_early = may_be_early && self.duplicate_acks > 0 && self.duplicate_acks < DUP_THRESH;
        let lets_out = is_early && config.limited_transmit && !config.repair.has_sack() && !self.counts_duplicates;
        let extra = if lets_out { u64::from(self.duplicate_acks * config.mss) } else { 0 };
        let cwnd = self.window.cwnd as u64 + extra;
        let in_flight = self.snd_nxt - self.snd_una;
        let pipe = if is_early && !config.limited_transmit { in_flight } else { self.outstanding.pipe(in_flight) };
        if matches!(self.phase, Phase::Recovery | Phase::Timeout)
            && !self.only_new
            && let Some(record) = self.outstanding.next_lost()
        {
            let room = room_of(record.len - u32::from(record.fin), config);
            return (pipe + room <= cwnd).then_some(Due::Again);
        }
        let (len, has_fin) = self.next_new(config)?;
        let has_room = pipe + room_of(len, config) <= cwnd && in_flight + u64::from(len) <= self.peer_window;
        has_room.then_some(Due::New(len, has_fin))
    }

    /// The next new segment: its payload, and whether the FIN rides on it. `None` if there is nothing to send.
    #[inline]
    pub(super) fn next_new(&self, config: &Config) -> Option<(u32, bool)> {
        let unsent = self.written.saturating_sub(self.snd_nxt);
        let len = unsent.min(u64::from(config.mss));
        let has_fin = self.closing && !self.fin_sent && len == unsent;
        (len > 0 || has_fin).then_some((len as u32, has_fin))
    }

    /// Sends a new segment whatever the congestion window says. Returns whether there was one and the peer takes it.
    pub(super) fn send_one_more(&mut self, config: &Config, now: Time, out: &mut impl Emit) -> bool {
        let in_flight = self.snd_nxt - self.snd_una;
        match self.next_new(config) {
            Some((len, has_fin)) if in_flight + u64::from(len) <= self.peer_window => {
                self.send_new(len, has_fin, config, now, out);
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, len: u32, has_fin: bool, config: &Config, now: Time, out: &mut impl Emit) {
        let seq = self.snd_nxt;
        let tells_reduction = len > 0 && self.feedback.pay_cwr();
        let flags = Flags::NONE.with_if(Flags::FIN, has_fin).with_if(Flags::CWR, tells_reduction);
        // RFC 3168 §6.1.4: data is ECN-capable, a FIN alone is a pure ACK.
        let ecn = self.feedback.field(len > 0, config);
        let sequence_len = len + u32::from(has_fin);
        self.fin_sent |= has_fin;
        self.snd_nxt += u64::from(sequence_len);
        self.outstanding.push(seq, sequence_len, has_fin, now);
        self.stats.segments += 1;
        if self.timing.end == Timing::NONE.end && config.rtt_sampling == RttSampling::OnePerWindow {
            self.timing = Timing { end: self.snd_nxt, sent_at: now };
        }
        if !self.rto_at.is_set() {
            self.rto_at = config.timer(now, self.rtt.rto(config));
        }
        self.last_sent_at = now;
        self.note_answer(now);
        self.progress.sent += u64::from(len);
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(u64::from(len), now);
        }
        self.wants_probe = self.finds_by_time;
        let segment = self.segment(seq, len, flags, ecn, config, now);
        out.emit(segment);
    }

    /// Sends the next lost segment again.
    fn resend_next(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let Some(record) = self.outstanding.next_lost() else { return };
        self.outstanding.resent(now);
        self.note_resent(now);
        self.progress.sent += u64::from(record.len);
        self.probe_at = Time::NEVER;
        if self.timing.end >= record.end() && !self.is_newreno {
            // Karn: its acknowledgement would be ambiguous.
            self.timing = Timing::NONE;
        }
        self.emit_again(&record, config, now, out);
    }

    /// Sends what `record` says once more.
    pub(super) fn emit_again(&mut self, record: &Record, config: &Config, now: Time, out: &mut impl Emit) {
        self.stats.retransmitted += 1;
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(u64::from(record.len), now);
        }
        self.last_sent_at = now;
        let ecn = self.feedback.field(config.ect_on_retransmit, config);
        let flags = Flags::NONE.with_if(Flags::FIN, record.fin);
        let segment = self.segment(record.seq, record.len - u32::from(record.fin), flags, ecn, config, now);
        out.emit(segment);
    }
}
