//! This file reads acknowledgements and acts on them: on the window, the timer and the repair.
//!
//! An acknowledgement goes through four steps:
//! 1. what it acknowledges and reports is noted ([`Sender::note_arrivals`]);
//! 2. a reduction that it proves needless is taken back;
//! 3. as an acknowledgement of new data or as a duplicate, it lets losses be found or the window grow;
//! 4. an echo of a mark is answered, and a reduction that is under way goes on.

use super::pacing::Before;
use super::repair::Repair;
use super::{Outlet, Phase, Sender, Timing};
use crate::cc::{Acked, Delivery};
use crate::endpoint::Emit;
use crate::endpoint::wraps_linux::Arrival;
use crate::rack::Rack;
use crate::segment::{Flags, Segment};
use crate::stack::{Config, RttSampling};
use base::{Span, Time};

/// What one acknowledgement told.
struct Arrived {
    /// Bytes that it acknowledges.
    bytes: u64,
    /// Bytes beyond a hole that it is the first to report.
    news: u64,
    /// Bytes that it is the first to tell the arrival of, whether it acknowledges or reports them.
    delivered: u64,
    /// How much of the window these bytes took.
    freed: u64,
    /// When the newest acknowledged segment was sent, if that gives a round trip.
    sent_at: Option<Time>,
    /// The state before it was read; all zero where deliveries are not counted.
    before: Before,
}

impl Sender {
    /// Takes the acknowledgement in `segment`. Returns whether something may be sent now.
    pub(in crate::endpoint) fn on_ack(
        &mut self,
        segment: &Segment,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        if segment.ack > self.snd_nxt {
            return false;
        }
        if self.repair.is_of_ns2() && (self.heard.hears(segment) || self.repair.backs_off()) {
            return self.on_ack_after_marks(segment, config, now, out);
        }
        self.read_ack(segment, config, now, out)
    }

    /// Takes an acknowledgement of what was sent, as [`Sender::on_ack`] does.
    #[inline(always)]
    pub(super) fn read_ack(
        &mut self,
        segment: &Segment,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        // RFC 9293 §3.10.7.4: an acknowledgement that was overtaken says nothing about the window.
        let mut is_update = segment.ack >= self.snd_una && self.peer_window != u64::from(segment.window);
        if is_update {
            self.peer_window = u64::from(segment.window);
        }
        if let Repair::Ns2Sack1(sack1) = &self.repair
            && (sack1.is_busy || !segment.sacks.is_empty())
        {
            return self.on_ack_sack1(segment, config, now, out);
        }
        let mut arrived = self.note_arrivals(segment, config, now);
        if let Repair::Counted(counting) = &mut self.repair {
            is_update |= counting.is_first_after_data(segment);
        }
        let is_duplicate = self.is_duplicate(segment, arrived.news, is_update, config);
        let is_undone = self.undoing.is_some() && self.reconsider(segment, &arrived, is_duplicate, config, now);
        if self.persist.is_some() {
            self.hear_of_room(config);
        }
        if arrived.bytes > 0 {
            self.on_new_ack(segment, &arrived, config, now, out);
        } else if is_duplicate {
            if self.has_outlived_reduction() {
                self.leave_outlived(segment, config, now);
            }
            if let Some(counted) = self.on_duplicate_ack(config, now, out) {
                (arrived.delivered, arrived.freed) = (counted, counted);
            }
        } else if is_undone {
            // What is lost nevertheless begins a recovery of its own.
            self.find_losses(config, now);
            if self.has_loss() {
                self.enter_recovery(config, now, out);
            }
        } else if arrived.news == 0 && !is_update {
            return false;
        }
        if self.heard.hears(segment) && !self.repair.is_of_ns2() {
            self.on_ecn_echo(config, now);
            // A recovery that begins with an echo was needed.
            self.forbid_undoing();
        }
        if self.descent.is_gradual() && self.is_reducing() {
            let goes_well = arrived.bytes > 0 && self.outstanding.ever_lost() == arrived.before.ever_lost;
            self.reduce_by(arrived.freed, goes_well, config);
        }
        if self.pacer.is_some() {
            self.steer(&arrived.before, [arrived.bytes, arrived.delivered], config, now);
        }
        true
    }

    /// Notes what `segment` acknowledges and reports.
    #[inline(always)]
    fn note_arrivals(&mut self, segment: &Segment, config: &Config, now: Time) -> Arrived {
        if self.counts_deliveries {
            return self.note_deliveries(segment, config, now);
        }
        let news = if segment.sacks.is_empty() { 0 } else { self.outstanding.selective(&segment.sacks, segment.ack) };
        let bytes = segment.ack.saturating_sub(self.snd_una);
        let sent_at = if bytes > 0 { self.outstanding.acknowledge(segment.ack) } else { None };
        Arrived { bytes, news, delivered: bytes, freed: bytes, sent_at, before: Before::default() }
    }

    /// Notes what `segment` acknowledges and reports, and tells the repair and the controller what is delivered.
    fn note_deliveries(&mut self, segment: &Segment, config: &Config, now: Time) -> Arrived {
        let before = Before { in_flight: self.outstanding.pipe_segments(), ever_lost: self.outstanding.ever_lost() };
        self.outstanding.begin(now, Self::echo_of(segment, config));
        let reported = self.outstanding.sacked_bytes();
        let reported_records = self.outstanding.sacked_records();
        let news = if segment.sacks.is_empty() { 0 } else { self.outstanding.selective(&segment.sacks, segment.ack) };
        let bytes = segment.ack.saturating_sub(self.snd_una);
        let twice = match segment.sacks.duplicate(segment.ack) {
            Some((start, end)) => self.note_twice(start, end, config),
            None => 0,
        };
        let records = self.outstanding.len();
        let sent_at = if bytes > 0 { self.outstanding.acknowledge(segment.ack) } else { None };
        let (mss, records) = (u64::from(config.mss), (records - self.outstanding.len()) as u32);
        let sacked = self.outstanding.sacked_bytes();
        let packets = records + self.outstanding.sacked_records() - reported_records;
        let new = bytes + sacked - reported;
        if self.heard.is_accurate() {
            let told_bytes = match packets {
                0 => 0,
                _ if bytes > 0 => bytes,
                _ => new,
            };
            self.heard.count(segment, Arrival { packets, bytes: new, told_bytes, mss: config.mss });
        }
        let mut delivered = new + twice;
        let mut freed = match config.whole_segments {
            true => mss * (u64::from(packets) + twice.div_ceil(mss)),
            false => delivered,
        };
        if self.repair.is_counted() && bytes > 0 {
            delivered = self.count_acknowledged(segment.ack, records, config);
            freed = delivered;
        }
        let rtt = sent_at.map(|sent_at| now.since(sent_at));
        self.on_delivery(segment, delivered, rtt, config, now);
        self.outstanding.tell_rack(Rack::adapt);
        Arrived { bytes, news, delivered, freed, sent_at, before }
    }

    /// Whether `segment` is a duplicate acknowledgement: it tells that something arrived beyond a hole.
    #[inline(always)]
    fn is_duplicate(&self, segment: &Segment, news: u64, is_update: bool, config: &Config) -> bool {
        if segment.ack != self.snd_una || self.snd_nxt == self.snd_una && !self.counts_idle_duplicates(config) {
            return false;
        }
        if self.repair.has_reports() {
            // RFC 6675 §2: news of what arrived, on whatever it rides.
            news > 0
        } else {
            // RFC 5681 §2
            segment.payload == 0 && !segment.flags.has(Flags::FIN) && !is_update
        }
    }

    /// Judges the last reduction anew by this acknowledgement. Returns whether the reduction was taken back because
    /// everything that was sent again had come twice.
    #[inline(never)]
    fn reconsider(
        &mut self,
        segment: &Segment,
        arrived: &Arrived,
        is_duplicate: bool,
        config: &Config,
        now: Time,
    ) -> bool {
        if self.heard.hears(segment) {
            self.forbid_undoing();
        }
        if arrived.bytes == 0 && self.phase == Phase::Timeout {
            let is_news = arrived.news > 0 || self.repair.is_counted() && is_duplicate;
            self.judge_timeout(segment, false, is_news, config, now);
        }
        self.undo_twice(config)
    }

    /// Tells the controller and the probe that `delivered` more bytes arrived, the newest of them after `rtt`.
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
                marked: self.marked_bytes(segment, delivered, config),
                una: self.snd_una.max(segment.ack),
                nxt: self.snd_nxt,
                rtt,
                one_way: config.timestamps.then(|| segment.one_way()),
                mss: f64::from(config.mss),
                now,
            };
            self.controller.delivered(&mut self.window, &delivery);
        }
        if let Repair::Rack(probing) = &self.repair
            && let Some(probe) = probing.probe
        {
            let is_duplicate = delivered == 0 && segment.payload == 0;
            self.settle_probe(probe, segment.ack, is_duplicate, config, now);
        }
    }

    /// How many bytes were marked, as an acknowledgement of `delivered` bytes says or lets suppose.
    fn marked_bytes(&self, segment: &Segment, delivered: u64, config: &Config) -> u64 {
        let supposed = || if self.heard.hears(segment) { delivered } else { 0 };
        self.counted_bytes(config).unwrap_or_else(supposed)
    }

    /// How many bytes were marked, where the segment in hand counts that.
    pub(super) fn counted_bytes(&self, config: &Config) -> Option<u64> {
        self.heard.marked_bytes(config.mss)
    }

    /// Takes an acknowledgement of new data.
    #[inline(always)]
    fn on_new_ack(
        &mut self,
        segment: &Segment,
        arrived: &Arrived,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) {
        self.snd_una = segment.ack;
        self.duplicate_acks = 0;
        let sent_at = match self.repair {
            Repair::Rack(_) | Repair::Counted(_) => self.sampled_at(segment, config, now),
            _ => arrived.sent_at,
        };
        self.measure(segment.ack, sent_at, config, now);
        if self.descent.is_gradual() {
            self.end_descent(segment, config, now);
        }
        if self.undoing.is_some() {
            self.only_new = match self.phase {
                Phase::Timeout => self.judge_timeout(segment, true, arrived.news > 0, config, now),
                Phase::Recovery if segment.ack < self.recover => self.undo_partly(segment, config, now),
                _ => false,
            };
        }
        let timer_runs_on = match self.phase {
            // The missing segment was only late: nothing more is deemed lost for now.
            Phase::Recovery if self.only_new => false,
            Phase::Recovery => self.on_ack_in_recovery(segment, arrived.bytes, config, now, out),
            Phase::Reducing => {
                if self.has_reported_loss(config, now) {
                    self.enter_recovery(config, now, out);
                }
                false
            }
            Phase::Open | Phase::Timeout => {
                self.on_ack_out_of_recovery(segment, arrived, config, now, out);
                false
            }
        };
        if !timer_runs_on {
            self.restart_timer(config, now);
        }
    }

    /// Restarts the retransmission timer if anything is outstanding, and asks for a new time of the next probe.
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, config: &Config, now: Time) {
        let is_idle = self.snd_una == self.snd_nxt;
        self.rto_at = if is_idle { Time::NEVER } else { config.timer(now, self.rtt.rto(config)) };
        self.repair.want_probe();
    }

    /// Lets the window grow for new data that is acknowledged outside a recovery, unless something is lost.
    #[inline(always)]
    fn on_ack_out_of_recovery(
        &mut self,
        segment: &Segment,
        arrived: &Arrived,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) {
        let counted = match self.phase {
            _ if self.descent.is_gradual() => arrived.freed,
            // RFC 3465 §2.3: after a timeout much of what is acknowledged had left the network before, so that at most
            // one segment counts.
            Phase::Timeout => arrived.bytes.min(config.mss.into()),
            _ => arrived.bytes,
        };
        if self.phase == Phase::Timeout && segment.ack >= self.repaired_at() {
            self.undo_whole(segment, config, now);
            self.phase = Phase::Open;
        }
        if self.has_reported_loss(config, now) && self.phase == Phase::Open {
            self.enter_recovery(config, now, out);
        } else if !config.control.models_path() && (!config.cwnd_validation || self.is_window_used()) {
            self.grow(segment, counted, config, now);
        }
    }

    /// Lets the controller grow the window for `bytes`, which `segment` acknowledged.
    #[inline(always)]
    pub(super) fn grow(&mut self, segment: &Segment, bytes: u64, config: &Config, now: Time) {
        // RFC 3168 §6.1.2: an acknowledgement that echoes congestion does not open the window.
        if self.heard.hears(segment) && !self.hears_of_before(config) {
            return;
        }
        let acked = Acked {
            bytes,
            mss: f64::from(config.mss),
            byte_counting: config.byte_counting,
            whole_segments: config.whole_segments,
            srtt: self.rtt.srtt(),
            now,
        };
        self.controller.grow(&mut self.window, &acked);
        self.window.cwnd = self.window.cwnd.min(config.window.max(config.mss.into()) as f64);
    }

    /// Whether an echo is of what was marked before a timeout.
    ///
    /// While what the timeout has left is repaired, an echo that goes on until a CWR is, for the CWR waits for new
    /// data. Linux does not ask then, whatever tells it of marks (tcp_may_raise_cwnd), and FreeBSD never does. Where
    /// each mark is told, what is heard is new, and so it is where what is sent again tells of a reduction.
    #[inline(never)]
    fn hears_of_before(&self, config: &Config) -> bool {
        let goes_on = !(config.control.echoes_each_mark() || self.heard.is_accurate() || self.repair.is_of_ns2());
        self.phase == Phase::Timeout && (self.descent.is_gradual() || goes_on)
    }

    /// Takes the round trip of the handshake.
    pub(in crate::endpoint) fn measure_handshake(&mut self, rtt: Span, config: &Config) {
        self.rtt.sample(rtt, self.snd_una, self.snd_nxt, config);
        self.outstanding.note_handshake(rtt);
    }

    /// Measures the round trip of an acknowledgement up to `ack`, whose newest segment was sent at `sent_at`. `None`
    /// says that this segment gives no round trip.
    #[inline(always)]
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
                    self.rtt.sample(config.clocked(sent_at, now), ack, self.snd_nxt, config);
                }
            }
        }
    }
}
