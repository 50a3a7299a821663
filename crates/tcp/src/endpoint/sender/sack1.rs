//! Loss recovery as ns-2's `Agent/TCP/Sack1` has it, which is older than RFC 6675 and differs from it in most things.
//!
//! Source: ns-2.35, tcp-sack1.cc, scoreboard-rq.cc, tcp.cc.
//!
//! | ns-2                       | here                                                                             |
//! |----------------------------|----------------------------------------------------------------------------------|
//! | `highest_ack_`, `maxseq_`  | `snd_una`, `snd_nxt`, each less one segment                                      |
//! | `t_seqno_`                 | `back_at`, or `snd_nxt`                                                          |
//! | `fastrecov_`, `timeout_`   | [`Phase::Recovery`]; [`Phase::Timeout`], until new data are acknowledged         |
//! | `recover_`, `dupacks_`     | `recover`, `duplicate_acks`                                                      |
//! | `pipe_`, `scb_`            | `pipe`, `reported`; what of `scb_` was sent again is all before `repaired`       |
//!
//! - The third report of something new starts a recovery. Every gap below the highest reported segment is deemed lost
//!   and is sent again once, in order; then comes new data. Segments go out while fewer are thought to be in the
//!   network than the window holds. Each acknowledgement says that one segment left, a partial one that two did.
//! - The window becomes half of the former window, whatever was outstanding, even below one segment: then nothing is
//!   sent until the timer expires. It keeps this size when the recovery ends. `ns2.rs` has the timer for that, and
//!   marks.
//! - After a timeout everything is sent again, reported or not, in slow start. Reports count again once new data was
//!   acknowledged. They start a recovery only once everything is acknowledged that was outstanding at the timeout;
//!   until then, reports beyond the second let nothing out.
//!
//! # Deviations
//! - What arrived is not sent again where a recovery, begun after an echo, overtakes what a timeout sends again.
//! - A segment that carries data says that a segment left only if it reports something new. In ns-2, agents send one
//!   way only.

use super::ns2::Answered;
use super::repair::{DUP_THRESH, Repair};
use super::{Outlet, Phase, Sender, Timing};
use crate::endpoint::Emit;
use crate::reassembly::Reassembly;
use crate::segment::Segment;
use crate::stack::Config;
use base::Time;

/// The state that this way of repair keeps beside that of [`Sender`].
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Sack1 {
    /// Whether there is something to repair.
    pub(super) is_busy: bool,
    /// What was reported to have arrived.
    reported: Reassembly,
    /// Segments thought to be in the network, in a recovery.
    pipe: i64,
    /// Gaps before this were sent again in this recovery.
    repaired: u64,
    /// The next sequence number to send again after a timeout; `None` when all of them have been.
    back_at: Option<u64>,
    /// How marks were answered.
    pub(super) answered: Answered,
}

base::left_whole!(Sack1);

impl Sender {
    /// Takes an acknowledgement that reports something, or any while there is something to repair. [`Sender::on_ack`]
    /// takes the others. Returns whether something may be sent now.
    #[inline(never)]
    pub(super) fn on_ack_sack1(
        &mut self,
        segment: &Segment,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        let ack = segment.ack;
        let bytes = ack.saturating_sub(self.snd_una);
        let known = if self.counts_deliveries { self.reported().bytes() } else { 0 };
        let was_recovering = self.phase == Phase::Recovery;
        let mut may_send = true;
        if was_recovering {
            let news = self.take_reports(segment);
            if bytes > 0 || news > 0 || segment.payload == 0 {
                self.sack1().pipe -= 1;
            }
            if ack >= self.recover {
                (self.phase, self.recover, self.ecn_recover) = (Phase::Open, 0, 0);
                self.pass(ack, config, now);
            } else if bytes > 0 {
                self.sack1().pipe -= 1;
                self.outstanding.acknowledge(ack);
                self.snd_una = ack;
                self.skip_to(ack);
                self.rtt.end_back_off();
                self.rto_at = now + self.rtt.rto(config);
            }
        } else if bytes > 0 {
            self.phase = Phase::Open;
            self.pass(ack, config, now);
            // What is acknowledged while it is being sent again had mostly left the network before (RFC 3465 §2.3).
            let is_back = self.sack1().back_at.is_some();
            let counted = if is_back { bytes.min(config.mss.into()) } else { bytes };
            self.grow(segment, counted, config, now);
        } else if ack == self.snd_una && self.snd_nxt > ack && self.phase == Phase::Open {
            if self.take_reports(segment) > 0 {
                self.on_report_sack1(config, now, out);
            }
            may_send = self.duplicate_acks == 0;
        } else if ack < self.snd_una {
            return false;
        }
        if self.counts_deliveries {
            let delivered = (bytes + self.reported().bytes()).saturating_sub(known);
            self.on_delivery(segment, delivered, None, config, now);
        }
        may_send
    }

    /// Notes that everything before `ack` arrived, outside a recovery.
    fn pass(&mut self, ack: u64, config: &Config, now: Time) {
        let sent_at = self.outstanding.acknowledge(ack);
        self.snd_una = ack;
        self.duplicate_acks = 0;
        self.skip_to(ack);
        let sack1 = self.sack1();
        sack1.reported.clear();
        sack1.is_busy = sack1.back_at.is_some();
        self.measure(ack, sent_at, config, now);
        self.restart_timer_ns2(config, now);
    }

    /// Sends nothing again that lies before `ack`.
    fn skip_to(&mut self, ack: u64) {
        let snd_nxt = self.snd_nxt;
        let back_at = &mut self.sack1().back_at;
        *back_at = back_at.map(|at| at.max(ack)).filter(|&at| at < snd_nxt);
    }

    /// Notes what `segment` reports. Returns the bytes that it is the first to report.
    fn take_reports(&mut self, segment: &Segment) -> u64 {
        let (una, ack) = (self.snd_una, segment.ack);
        let sack1 = self.sack1();
        sack1.is_busy = true;
        let reported = &mut sack1.reported;
        if ack > una {
            reported.advance(ack);
        }
        let blocks = segment.sacks.above(ack).filter(|&(start, _)| start > una);
        blocks.map(|(start, end)| reported.merge(start, end)).sum()
    }

    /// Takes a report of something new in an acknowledgement that does not advance.
    fn on_report_sack1(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.duplicate_acks += 1;
        if self.duplicate_acks < DUP_THRESH && config.limited_transmit {
            let more = f64::from(self.duplicate_acks * config.mss);
            self.send_onward((self.window.cwnd + more) as u64, config, now, out);
        }
        let may_begin = self.snd_una > self.recover || self.repair.was_marked();
        if self.duplicate_acks != DUP_THRESH || !may_begin {
            return;
        }
        self.stats.recoveries += 1;
        self.phase = Phase::Recovery;
        self.sack1().pipe = self.outstanding.len() as i64 - i64::from(DUP_THRESH);
        self.timing = Timing::NONE;
        self.begin_recovery_ns2(config, now);
        self.sack1().repaired = self.send_old(self.snd_una, config, now, out);
        self.rto_at = now + self.rtt.rto(config);
    }

    /// Sends everything from `snd_una` on again, since the retransmission timer expired.
    pub(super) fn on_timeout_sack1(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let una = self.snd_una;
        let sack1 = self.sack1();
        sack1.reported.clear();
        (sack1.back_at, sack1.is_busy) = (Some(una), true);
        self.phase = Phase::Timeout;
        (self.recover, self.duplicate_acks, self.timing) = (self.snd_nxt, 0, Timing::NONE);
        self.time_out_ns2(config, now);
        self.rtt.back_off(config);
        self.rto_at = now + self.rtt.rto(config);
        self.push_generally(config, now, out);
    }

    /// Sends what may be sent while there is something to repair.
    pub(super) fn fill_window_sack1(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let window = self.window.cwnd as u64;
        if self.phase != Phase::Recovery {
            while self.send_onward(window, config, now, out) {}
            return;
        }
        let most = (window / u64::from(config.mss)) as i64;
        while self.sack1().pipe < most {
            let from = self.sack1().repaired.max(self.snd_una);
            if let Some(gap) = self.reported().first_gap(from) {
                self.sack1().repaired = self.send_old(gap, config, now, out);
            } else if !self.send_onward(u64::MAX, config, now, out) {
                return;
            }
            self.sack1().pipe += 1;
        }
    }

    /// Sends the next segment if it ends at most `window` bytes beyond `snd_una`. This is an old one while everything
    /// is being sent again, and else a new one. Returns whether it sent one.
    fn send_onward(&mut self, window: u64, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        let Some(at) = self.sack1().back_at else {
            let in_flight = self.snd_nxt - self.snd_una;
            return match self.next_new(config) {
                Some((len, has_fin)) if in_flight + u64::from(len) <= window.min(self.peer_window) => {
                    self.send_new(len, has_fin, config, now, out);
                    true
                }
                _ => false,
            };
        };
        if at - self.snd_una + self.outstanding.payload_at(at) > window {
            return false;
        }
        let end = self.send_old(at, config, now, out);
        self.sack1().back_at = (end < self.snd_nxt).then_some(end);
        true
    }

    /// Sends the segment at `seq` again. Returns where it ends.
    fn send_old(&mut self, seq: u64, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> u64 {
        let record = self.outstanding.send_again(seq, now);
        if !self.rto_at.is_set() {
            self.rto_at = now + self.rtt.rto(config);
        }
        self.emit_again(&record, config, now, out);
        record.end()
    }

    #[inline]
    fn sack1(&mut self) -> &mut Sack1 {
        match &mut self.repair {
            Repair::Ns2Sack1(sack1) => sack1,
            _ => unreachable!("asked for only where a stack has it"),
        }
    }

    #[inline]
    fn reported(&self) -> &Reassembly {
        match &self.repair {
            Repair::Ns2Sack1(sack1) => &sack1.reported,
            _ => unreachable!("asked for only where a stack has it"),
        }
    }
}
