//! This file says how losses are found and repaired. There are seven ways; a connection has one of them from its start.
//!
//! | | a loss is | a partial acknowledgement | the window comes down |
//! |---|---|---|---|
//! | `Reno` (RFC 2581) | three duplicates | ends the recovery | at once |
//! | `NewReno` (RFC 6582) | three duplicates | tells the next hole | at once |
//! | `Counted` (Linux without SACK) | three duplicates, or more with reordering | tells the next hole | gradually |
//! | `Sack` (RFC 6675) | three segments reported above it | is one of many reports | as configured |
//! | `Rack` (RFC 8985) | sent before something that arrived | is one of many reports | as configured |
//! | `Ns2NewReno` (`newreno.rs`) | three duplicates | tells the next hole | at once |
//! | `Ns2Sack1` (`sack1.rs`) | three reports | says that two segments left | at once |
//!
//! A segment that is deemed lost is marked in [`Outstanding`](crate::outstanding::Outstanding) and is sent again as the
//! window allows. Only `Ns2Sack1` keeps an account of its own.

use super::counting::Counting;
use super::newreno::Ns2NewReno;
use super::probe::Probing;
use super::sack1::Sack1;
use super::{Outlet, Phase, Sender, Timing};
use crate::cc::Cause;
use crate::endpoint::Emit;
use crate::rack::Rack;
use crate::segment::Segment;
use crate::stack::{self, Config, Reduction};
use base::Time;

/// So many duplicate acknowledgements, or segments reported above a hole, make a loss (RFC 5681 §3.2, RFC 6675 §2).
pub(super) const DUP_THRESH: u32 = 3;

/// A way of repair, with its state.
///
/// Every segment asks for the variant, so that this has to be cheap: the tag is a byte of its own, and the variants
/// with reports come last.
#[derive(Clone, PartialEq, Debug)]
#[repr(u8)]
pub(super) enum Repair {
    /// Fast retransmit, and fast recovery that ends with the first acknowledgement of new data.
    Reno,
    /// Fast recovery that goes on over partial acknowledgements.
    NewReno,
    /// `Agent/TCP/Newreno` of ns-2.
    Ns2NewReno(Ns2NewReno),
    /// NewReno as in Linux: each duplicate stands for a segment that arrived.
    Counted(Counting),
    /// Receivers report what arrived.
    Sack {
        /// This recovery has had its rescue (RFC 6675): the last segment was sent again because there was nothing else
        /// to send.
        has_rescued: bool,
    },
    /// Receivers report what arrived, and losses are found by time.
    Rack(Probing),
    /// `Agent/TCP/Sack1` of ns-2.
    Ns2Sack1(Box<Sack1>),
}

base::packed!(Repair:
    Reno | NewReno | Ns2NewReno(state) | Counted(state) | Sack { has_rescued } | Rack(state) | Ns2Sack1(state)
);

impl Repair {
    /// Whether this is a way of ns-2.
    pub fn is_of_ns2(&self) -> bool {
        matches!(self, Self::Ns2NewReno(_) | Self::Ns2Sack1(_))
    }

    /// The configured way, with nothing to repair.
    pub fn new(config: &Config) -> Self {
        match config.repair {
            stack::Repair::Reno => Self::Reno,
            stack::Repair::NewReno if Self::counts_duplicates(config) => Self::Counted(Counting::default()),
            stack::Repair::NewReno => Self::NewReno,
            stack::Repair::Sack => Self::Sack { has_rescued: false },
            stack::Repair::Rack => Self::Rack(Probing::default()),
            stack::Repair::Ns2NewReno => Self::Ns2NewReno(Ns2NewReno::default()),
            stack::Repair::Ns2Sack1 => Self::Ns2Sack1(Box::default()),
        }
    }

    fn counts_duplicates(config: &Config) -> bool {
        config.reduction == Reduction::Proportional && !config.control.models_path()
    }

    /// Whether the times of arrivals and retransmissions are kept. RACK finds losses by them; a Linux without SACK
    /// measures round trips by them.
    pub fn keeps_time(config: &Config) -> bool {
        match config.repair {
            stack::Repair::Rack => true,
            stack::Repair::NewReno => Self::counts_duplicates(config),
            _ => false,
        }
    }

    /// Whether receivers report what arrived.
    #[inline]
    pub fn has_reports(&self) -> bool {
        matches!(self, Self::Sack { .. } | Self::Rack(_) | Self::Ns2Sack1(_))
    }

    /// Whether losses are found by time.
    #[inline]
    pub fn is_rack(&self) -> bool {
        matches!(self, Self::Rack(_))
    }

    /// Whether duplicates stand for segments that arrived.
    #[inline]
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Counted(_))
    }

    /// Whether an acknowledgement in order tells it nothing and asks nothing of it.
    #[inline]
    pub fn is_idle(&self) -> bool {
        match self {
            Self::Reno | Self::NewReno | Self::Sack { .. } => true,
            Self::Ns2NewReno(newreno) => !newreno.answered.backs_off,
            // It tells segments with data from pure acknowledgements, and so has to see all of them.
            Self::Counted(_) => false,
            Self::Rack(probing) => probing.probe.is_none(),
            Self::Ns2Sack1(sack1) => !sack1.is_busy && !sack1.answered.backs_off,
        }
    }

    /// When a tail loss probe is due, or an instant before that where that is not reckoned yet.
    #[inline]
    pub fn probe_at(&self) -> Time {
        if let Self::Rack(probing) = self { probing.probe_at } else { Time::NEVER }
    }

    /// When segments that may merely have been reordered are to be deemed lost.
    #[inline]
    pub fn reorder_at(&self) -> Time {
        if let Self::Rack(probing) = self { probing.reorder_at } else { Time::NEVER }
    }

    /// The earlier of the two.
    #[inline]
    pub fn wakes_at(&self) -> Time {
        self.probe_at().min(self.reorder_at())
    }

    /// Calls the next probe off.
    #[inline]
    pub fn call_off_probe(&mut self) {
        if let Self::Rack(probing) = self {
            (probing.probe_at, probing.asked_at) = (Time::NEVER, Time::NEVER);
        }
    }

    /// Asks for a new time of the next probe.
    #[inline]
    pub fn want_probe(&mut self) {
        if let Self::Rack(probing) = self {
            probing.is_wanted = true;
        }
    }

    /// Whether somebody asked for a new time of the next probe. Nobody does then.
    #[inline(always)]
    pub fn wants_probe(&mut self) -> bool {
        if let Self::Rack(probing) = self { std::mem::take(&mut probing.is_wanted) } else { false }
    }

    /// Forgets the probe that is out: whatever becomes of it is ignored.
    pub fn forget_probe(&mut self) {
        if let Self::Rack(probing) = self {
            probing.probe = None;
        }
    }

    /// Calls off both timers.
    pub fn call_off(&mut self) {
        self.call_off_probe();
        if let Self::Rack(probing) = self {
            probing.reorder_at = Time::NEVER;
        }
    }
}

impl Sender {
    /// Deems lost what the current acknowledgement proves to be. Where losses are found by time, it also sets the timer
    /// for those that may follow.
    #[inline]
    pub(super) fn find_losses(&mut self, config: &Config, now: Time) {
        if !self.repair.is_rack() {
            self.outstanding.detect_losses();
            return;
        }
        let has_news = self.outstanding.rack().is_some_and(Rack::has_news);
        if has_news && (self.outstanding.has_sacked() || self.outstanding.has_resent()) {
            self.find_losses_by_time(config, now);
        }
    }

    /// Whether a recovery is due: the first segment is lost, or any segment where losses are found by time.
    pub(super) fn has_loss(&self) -> bool {
        if self.repair.is_rack() { self.outstanding.has_lost() } else { self.outstanding.is_front_lost() }
    }

    /// Finds losses by reports. Returns whether something is lost.
    #[inline]
    pub(super) fn has_reported_loss(&mut self, config: &Config, now: Time) -> bool {
        let outstanding = &self.outstanding;
        if !self.repair.has_reports() || !(outstanding.has_sacked_or_lost() || outstanding.has_resent()) {
            return false;
        }
        self.find_losses(config, now);
        self.has_loss()
    }

    /// Takes a duplicate acknowledgement. Returns how many bytes it says arrived, where duplicates are counted.
    #[inline(never)]
    pub(super) fn on_duplicate_ack(
        &mut self,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> Option<u64> {
        match self.repair {
            Repair::Counted(_) => {
                self.duplicate_acks += 1;
                return Some(self.on_counted_duplicate(config, now, out));
            }
            Repair::Reno | Repair::NewReno | Repair::Ns2NewReno(_) => self.on_plain_duplicate(config, now, out),
            Repair::Rack(_) => {
                self.measure_report(config, now);
                self.on_report(config, now, out);
            }
            Repair::Sack { .. } | Repair::Ns2Sack1(_) => self.on_report(config, now, out),
        }
        None
    }

    /// Takes a duplicate acknowledgement from a receiver that reports nothing.
    fn on_plain_duplicate(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.duplicate_acks += 1;
        match self.phase {
            Phase::Timeout if !self.repair.was_marked() => {}
            // Each duplicate says that a segment left the network.
            Phase::Recovery => self.inflate(1, config),
            Phase::Open | Phase::Reducing | Phase::Timeout => {
                // RFC 6582 §3.2 step 2: not again for the window of the last loss. Reno knows no such window.
                let is_new =
                    matches!(self.repair, Repair::Reno) || self.snd_una > self.recover || self.repair.was_marked();
                if self.duplicate_acks == DUP_THRESH && is_new {
                    self.enter_recovery(config, now, out);
                    self.inflate(DUP_THRESH, config);
                }
            }
        }
    }

    /// Takes a report of something new beyond a hole.
    fn on_report(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.duplicate_acks += 1;
        let by_time = self.repair.is_rack();
        match self.phase {
            Phase::Timeout if !by_time => {}
            Phase::Timeout | Phase::Recovery => self.find_losses(config, now),
            Phase::Open | Phase::Reducing => {
                self.find_losses(config, now);
                self.repair.call_off_probe();
                let is_lost = !by_time && self.duplicate_acks >= DUP_THRESH || self.has_loss();
                // A loss found by time is always a new one, even if a reduction for this window was taken back
                // (tcp_time_to_recover).
                if is_lost && (by_time || self.snd_una >= self.recover) {
                    self.enter_recovery(config, now, out);
                }
            }
        }
    }

    /// Begins fast recovery.
    pub(super) fn enter_recovery(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.stats.recoveries += 1;
        if let Repair::Sack { has_rescued } = &mut self.repair {
            *has_rescued = false;
        }
        if self.descent.is_gradual() {
            self.enter_recovery_gradually(config, now);
            return;
        }
        self.begin_undoing(self.window_before(config), config);
        self.phase = Phase::Recovery;
        // A reduction by ECN in the same window was for the same congestion (RFC 3168 §6.1.2); DCTCP's may have been
        // next to nothing (RFC 8257 §3.5).
        let is_due = self.snd_una >= self.ecn_recover || config.control.echoes_each_mark();
        match &mut self.repair {
            Repair::Ns2NewReno(_) => self.reduce_newreno(config, now),
            _ if is_due => {
                self.reduce(Cause::Loss, self.flight(config), config, now);
            }
            _ => self.window.cwnd = self.window.ssthresh,
        }
        if !self.is_ns2_newreno() {
            self.recover = self.snd_nxt;
        }
        self.timing = Timing::NONE;
        if !self.repair.is_rack() {
            self.outstanding.lose_front();
        }
        self.resend_next(config, now, out);
        self.rto_at = config.timer(now, self.rtt.rto(config));
    }

    /// Takes an acknowledgement of `bytes` during fast recovery. Returns whether the timer runs on as it is.
    #[inline(never)]
    pub(super) fn on_ack_in_recovery(
        &mut self,
        segment: &Segment,
        bytes: u64,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        let is_full = self.snd_una >= self.recover;
        if is_full && self.undo_whole(segment, config, now) {
            return false;
        }
        match self.repair {
            Repair::Counted(_) => self.lose_next(),
            Repair::NewReno if is_full => {
                // RFC 6582 §3.2 step 3, the choice that avoids a burst
                let (mss, flight) = (f64::from(config.mss), (self.snd_nxt - self.snd_una) as f64);
                self.end_recovery(self.window.ssthresh.min(flight.max(mss) + mss));
            }
            Repair::NewReno => self.repair_next_hole(bytes, config, now, out),
            Repair::Ns2NewReno(_) => return self.on_ack_in_ns2_recovery(segment, bytes, config, now, out),
            Repair::Reno => self.end_recovery(self.window.ssthresh),
            Repair::Sack { .. } | Repair::Rack(_) | Repair::Ns2Sack1(_) if is_full => {
                self.end_recovery(self.window.ssthresh);
            }
            Repair::Sack { .. } | Repair::Rack(_) | Repair::Ns2Sack1(_) => self.find_losses(config, now),
        }
        false
    }

    /// Ends fast recovery with a window of `cwnd`.
    pub(super) fn end_recovery(&mut self, cwnd: f64) {
        self.phase = Phase::Open;
        self.window.cwnd = cwnd;
    }

    /// Takes a partial acknowledgement of `bytes` (RFC 6582 §3.2 step 3). The next hole is sent again at once, and the
    /// window shrinks by the bytes acknowledged less one segment.
    pub(super) fn repair_next_hole(&mut self, bytes: u64, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let (mss, bytes) = (f64::from(config.mss), bytes as f64);
        self.outstanding.lose_front();
        self.resend_next(config, now, out);
        self.window.cwnd -= bytes;
        if bytes >= mss {
            self.window.cwnd += mss;
        }
        self.window.cwnd = self.window.cwnd.max(mss);
    }

    /// The acknowledgement that ends a recovery, or the time after a timeout, reaches this.
    #[inline]
    pub(super) fn repaired_at(&self) -> u64 {
        // RFC 6582 §3.2, step 1: duplicates from the window that was just repaired begin no new recovery.
        self.recover + u64::from(self.repair.is_counted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::sender::reduction::Descent;

    /// Each way with each way down: what is kept follows from the configuration alone.
    #[test]
    fn a_way_of_repair_is_chosen_once() {
        let linux = stack::profile("linux").expect("a profile");
        for reduction in [Reduction::AtOnce, Reduction::Proportional] {
            for (_, repair) in stack::Repair::WORDS {
                let config = Config { repair, reduction, ..(linux.config)() };
                let way = Repair::new(&config);
                assert_eq!(way.has_reports(), repair.has_sack(), "{repair:?}");
                let is_gradual = Descent::new(&way, &config).is_gradual();
                let may = matches!(way, Repair::Counted(_) | Repair::Sack { .. } | Repair::Rack(_));
                assert_eq!(is_gradual, may && reduction == Reduction::Proportional, "{repair:?}");
                assert_eq!(Repair::keeps_time(&config), way.is_rack() || way.is_counted(), "{repair:?}");
            }
        }
    }
}
