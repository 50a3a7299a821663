//! This file delays acknowledgements as long as the sender's habits allow. It has Linux's quick acknowledgements, its
//! adaptive timer, and its interactive sessions.
//!
//! Every segment of new data is one of three things. While the receiver hurries (`quick_acks_left`; at the start, after
//! a pause longer than the retransmission timeout, when data came twice) it is acknowledged at once. Otherwise it is
//! acknowledged when more than one segment's worth waits, and when the application reads the last of what the peer
//! wrote, since nothing more may come soon. In an interactive session, one in which the application answers what it
//! hears, neither hurry nor reading counts, and the answer carries the acknowledgement. What is left waits for the
//! timer, which runs for about as long as two segments were apart.
//!
//! Reports of data out of order go out one by one at first; those beyond the third at one place of the stream wait for
//! each other, for a twentieth of a round trip and a millisecond at most. Without selective acknowledgements none
//! waits.
//!
//! Source: Linux 6.12, tcp_input.c (tcp_event_data_recv, tcp_measure_rcv_mss, __tcp_ack_snd_check, tcp_fin), tcp.c
//! (__tcp_cleanup_rbuf), tcp_output.c (tcp_send_delayed_ack, tcp_event_data_sent), tcp_timer.c
//! (tcp_delack_timer_handler).
//!
//! | Linux                     | here                          |
//! |---------------------------|-------------------------------|
//! | `icsk_ack.ato`            | `interval`                    |
//! | `icsk_ack.quick`          | `quick_acks_left` of the receiver |
//! | `icsk_ack.pingpong`       | `answers`                     |
//! | `icsk_ack.rcv_mss`        | `full`                        |
//! | `icsk_ack.last_seg_size`  | `small`                       |
//! | `ICSK_ACK_PUSHED`, `2`    | `pushed`                      |
//! | `ICSK_ACK_SCHED`, `NOW`   | `is_owed`, `is_due`           |
//! | `dup_ack_counter`, `compressed_ack`, `compressed_ack_rcv_nxt` | `reports`, `waiting`, `reported` |
//!
//! # Deviations
//! - The clock has no ticks.
//! - The application reads as soon as something arrives, not when it is next scheduled.

use super::Receiver;
use super::growing::Growing;
use crate::endpoint::Emit;
use crate::endpoint::sender::Sender;
use crate::memory::renewed;
use crate::segment::{Flags, Segment, stamp_of};
use crate::stack::Config;
use base::{Span, Time};

/// TCP_DELACK_MAX.
const LONGEST: Span = Span::from_ms(200);
/// The longest wait where nothing is known of the round trip (half a second) and no pause is to be expected.
const UNBOUNDED: Span = Span::from_ms(500);
/// TCP_MSS_DEFAULT: what a full segment is taken to hold at first, and the least that is believed if two in a row do.
const FULL_AT_FIRST: u32 = 536;
/// TCP_MIN_MSS and a header without options, less one with timestamps: the least that is believed of what is not the
/// end of something.
const LEAST_FULL: u32 = 76;
/// Reports of data out of order that are sent at once: TCP_FASTRETRANS_THRESH. Most that wait: tcp_comp_sack_nr.
const REPORTS_AT_ONCE: u8 = 3;
const MOST_WAITING: u8 = 44;
/// tcp_comp_sack_delay_ns, and tcp_comp_sack_slack_ns, by which the timer is late.
const LONGEST_REPORT: Span = Span::from_ms(1);
const REPORT_SLACK: Span = Span::from_us(100);
/// Blocks a report has, beyond which a new one is not kept waiting: TCP_SACK_BLOCKS_EXPECTED.
const FEW_BLOCKS: usize = 2;
/// Answers that make a session interactive: tcp_pingpong_thresh.
const INTERACTIVE: u8 = 1;

/// What the receiver knows of the sender's habits.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Delaying {
    /// How long an acknowledgement waits for company; zero before the first data.
    interval: Span,
    /// When data last arrived.
    heard_at: Time,
    /// Payload of a full segment as far as seen, and of the last one that was not full.
    full: u32,
    small: u32,
    /// Answers to what was heard since the session was last found not to be interactive.
    answers: u8,
    /// Ends of what the peer wrote that are not acknowledged, at most two.
    pushed: u8,
    /// Something arrived that is not acknowledged.
    is_owed: bool,
    /// It is to be acknowledged at once.
    is_due: bool,
    /// Reports sent at once that end at `reported`, and those that wait.
    reports: u8,
    waiting: u8,
    reported: u64,
    /// The window, which makes for hurry when it grows.
    growing: Growing,
}

base::packed!(Delaying {
    interval,
    heard_at,
    full,
    small,
    answers,
    pushed,
    is_owed,
    is_due,
    reports,
    waiting,
    reported,
    growing,
});

impl Delaying {
    fn is_interactive(&self) -> bool {
        self.answers >= INTERACTIVE
    }

    /// tcp_measure_rcv_mss.
    fn measure(&mut self, segment: &Segment, is_new_echo: bool, config: &Config, now: Time) {
        let len = u32::from(segment.payload);
        let before = std::mem::take(&mut self.small);
        let is_end = segment.flags.has(Flags::PSH);
        if len >= self.full {
            if config.timestamps && is_new_echo {
                self.growing.measure(segment, stamp_of(now));
            }
            if len > self.full {
                self.growing.note_full(config);
            }
            self.full = len;
            self.pushed = self.pushed.max(u8::from(is_end));
            return;
        }
        let options = config.header.saturating_sub(40);
        if len + options >= FULL_AT_FIRST || len >= LEAST_FULL && !is_end && !segment.flags.has(Flags::FIN) {
            self.small = len;
            if len == before {
                self.full = len;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }
}

impl Receiver {
    /// The state of a receiver that adapts, where a stack has it; in the memory of a former one.
    pub(super) fn delaying_of(former: Option<Box<Delaying>>, config: &Config) -> Option<Box<Delaying>> {
        if !config.delayed_ack.adapts {
            return None;
        }
        let fresh = Delaying {
            interval: Span::ZERO,
            heard_at: Time::ZERO,
            full: FULL_AT_FIRST.min(config.mss),
            small: 0,
            answers: 0,
            pushed: 0,
            is_owed: false,
            is_due: false,
            reports: 0,
            waiting: 0,
            reported: 0,
            growing: Growing::new(config),
        };
        Some(renewed(former, fresh))
    }

    /// Hurries with as many acknowledgements as are left then, `most` at most (tcp_incr_quickack).
    fn hurry(&mut self, most: u32, config: &Config) {
        let Some(delaying) = &self.delaying else { return };
        let fit = (self.offered(config) / (2 * u64::from(delaying.full))).min(u64::from(most)) as u32;
        self.quick_acks_left = self.quick_acks_left.max(if fit == 0 { most.min(2) } else { fit });
    }

    /// Hurries and forgets the habits: something is amiss (tcp_enter_quickack_mode).
    pub(in crate::endpoint) fn hurry_afresh(&mut self, most: u32, config: &Config) {
        self.hurry(most, config);
        if let Some(delaying) = &mut self.delaying {
            delaying.answers = 0;
            delaying.interval = config.delayed_ack.timeout;
        }
    }

    /// What arrived next is to be acknowledged at once, whatever the habits.
    pub(in crate::endpoint) fn make_due(&mut self) {
        if let Some(delaying) = &mut self.delaying {
            delaying.is_due = true;
        }
    }

    /// The data in hand is to be acknowledged at once, and is no reason for hurry beyond that.
    pub(in crate::endpoint) fn acknowledge_next(&mut self) {
        match &mut self.delaying {
            Some(delaying) => delaying.is_due = true,
            None => self.quick_acks_left = self.quick_acks_left.max(1),
        }
    }

    /// Acknowledges new data or a FIN in order, or lets it wait; it closed a gap if `fills_gap`.
    pub(super) fn acknowledge_adaptively(
        &mut self,
        segment: &Segment,
        fills_gap: bool,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        if segment.payload > 0 {
            self.note_habits(segment, sender, config, now);
            self.grow_window(segment, config);
        }
        let is_read = self.reads_at_once();
        let quick = self.quick_acks_left > 0;
        let Some(delaying) = &mut self.delaying else { return };
        delaying.is_owed = true;
        if segment.flags.has(Flags::FIN) {
            // tcp_fin: what is left to say is this end's own FIN, or it was said.
            delaying.is_due |= sender.fin_sent;
            delaying.answers = delaying.answers.max(INTERACTIVE);
        }
        let is_interactive = delaying.is_interactive();
        let by_reading = is_read && segment.payload > 0 && (delaying.pushed > u8::from(is_interactive));
        let many = (config.delayed_ack.every - 1) * delaying.full;
        let fills_all = fills_gap && self.held.is_empty();
        let at_once = fills_all || delaying.is_due || quick && !is_interactive || by_reading || self.unacked > many;
        if at_once {
            self.acknowledge(sender, config, now, out);
        } else if fills_gap {
            self.report(sender, config, now, out);
        } else {
            self.delay_ack(sender, config, now, out);
        }
        if is_read {
            self.note_read(segment.end(), config, now);
        }
    }

    /// How much may be offered, and how much room there is in all.
    pub(super) fn offer_and_space(&self, config: &Config) -> (u64, u64) {
        match &self.delaying {
            Some(delaying) => (delaying.growing.offer, delaying.growing.space(config)),
            None => (config.window, config.window),
        }
    }

    /// What arrived may let the window grow; if it does, it is acknowledged at once.
    fn grow_window(&mut self, segment: &Segment, config: &Config) {
        let Some(delaying) = &self.delaying else { return };
        if !delaying.growing.may_grow(config) {
            return;
        }
        // What is held takes room, what a repair has just brought in order too. A segment does when it is in order;
        // before it is held, the window grows (tcp_data_queue_ofo).
        let own = u64::from(segment.payload);
        let held = self.held.bytes() + self.rcv_nxt.saturating_sub(segment.end());
        let taken = self.unread() + if segment.end() > self.rcv_nxt { held.saturating_sub(own) } else { held + own };
        if let Some(delaying) = &mut self.delaying
            && delaying.growing.grow(segment, taken, config)
        {
            self.quick_acks_left |= 1;
        }
    }

    /// The application reads what there is; the first piece of it ends at `read`.
    pub(super) fn note_read(&mut self, read: u64, config: &Config, now: Time) {
        let next = self.rcv_nxt - self.unread();
        if let Some(delaying) = &mut self.delaying {
            delaying.growing.adjust(read.min(next), next, config, now);
        }
    }

    /// tcp_event_data_recv.
    fn note_habits(&mut self, segment: &Segment, sender: &Sender, config: &Config, now: Time) {
        let rto = sender.rtt.rto(config);
        let least = config.delayed_ack.timeout;
        let is_new_echo = segment.echo != self.peer_echo;
        let offered = self.offered(config);
        let Some(delaying) = &mut self.delaying else { return };
        delaying.measure(segment, is_new_echo, config, now);
        delaying.growing.measure_window(segment.end(), offered, now);
        let pause = now.since(delaying.heard_at);
        let is_first = delaying.interval == Span::ZERO;
        delaying.heard_at = now;
        if is_first {
            delaying.interval = least;
            self.hurry(config.delayed_ack.quick, config);
        } else if pause <= least / 2 {
            delaying.interval = delaying.interval / 2 + least / 2;
        } else if pause < delaying.interval {
            delaying.interval = (delaying.interval / 2 + pause).min(rto).min(LONGEST);
        } else if pause > rto {
            // The sender may have started again with a small window.
            self.hurry(config.delayed_ack.quick, config);
        }
    }

    /// tcp_send_delayed_ack.
    fn delay_ack(&mut self, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        let least = config.delayed_ack.timeout;
        let Some(delaying) = &self.delaying else { return };
        let mut wait = delaying.interval.max(least);
        if wait > least {
            let most = if delaying.is_interactive() || delaying.pushed > 0 { LONGEST } else { UNBOUNDED };
            let round_trip = sender.rtt.srtt().map_or(most, |srtt| srtt.max(least));
            wait = wait.min(most).min(round_trip);
        }
        // tcp_delack_max: sooner than the sender's shortest timeout.
        let tick = Span::from_ms(1);
        wait = wait.min(LONGEST.max(least)).min(Span::from_ns(config.rto_min.ns().saturating_sub(tick.ns())).max(tick));
        if self.delayed_ack_at.is_set() && self.delayed_ack_at <= now + wait / 4 {
            return self.acknowledge(sender, config, now, out);
        }
        self.delayed_ack_at = self.delayed_ack_at.min(config.timer(now, wait));
    }

    /// Notes that the timer expired with nothing to carry the delayed acknowledgement (tcp_delack_timer_handler).
    pub(super) fn note_delay_was_vain(&mut self, sender: &Sender, config: &Config) {
        let rto = sender.rtt.rto(config);
        let Some(delaying) = &mut self.delaying else { return };
        if delaying.waiting > 0 {
            return;
        }
        if delaying.is_interactive() {
            delaying.answers = 0;
            delaying.interval = config.delayed_ack.timeout;
        } else {
            delaying.interval = (delaying.interval * 2).min(rto).min(LONGEST);
        }
    }

    /// Notes that something that carries an acknowledgement goes out.
    pub(super) fn note_ack_sent(&mut self, config: &Config) {
        let Some(delaying) = &mut self.delaying else { return };
        if delaying.is_owed && self.quick_acks_left > 0 {
            self.quick_acks_left -= 1;
            if self.quick_acks_left == 0 {
                delaying.interval = config.delayed_ack.timeout;
            }
        }
        (delaying.is_owed, delaying.is_due, delaying.pushed) = (false, false, 0);
        delaying.waiting = 0;
    }

    /// Data is about to be held out of order: reports that wait go first where it begins a block beyond the second
    /// (tcp_sack_new_ofo_skb).
    pub(super) fn report_before(
        &mut self,
        segment: &Segment,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        if self.delaying.as_ref().is_none_or(|delaying| delaying.waiting == 0) {
            return;
        }
        let blocks = self.held.blocks(self.rcv_nxt);
        let mut known = blocks.above(self.rcv_nxt);
        let at = known.position(|(start, end)| start == segment.end() || end == segment.seq);
        if at.unwrap_or_else(|| blocks.above(self.rcv_nxt).count()) >= FEW_BLOCKS {
            self.acknowledge(sender, config, now, out);
        }
    }

    /// Reports data out of order, or lets the report wait for others (__tcp_ack_snd_check).
    pub(super) fn report(&mut self, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        let srtt = sender.rtt.srtt();
        let is_quick = self.quick_acks_left > 0;
        let (next, is_waiting) = (self.rcv_nxt, self.delayed_ack_at.is_set());
        let many = self.unacked > (config.delayed_ack.every - 1) * config.mss;
        let Some(delaying) = &mut self.delaying else { return self.acknowledge(sender, config, now, out) };
        let is_sooner = many || is_quick && !delaying.is_interactive() || delaying.is_due;
        let is_told = config.repair.has_sack();
        if is_sooner || !is_told || delaying.waiting >= MOST_WAITING {
            return self.acknowledge(sender, config, now, out);
        }
        if delaying.reported != next {
            (delaying.reported, delaying.reports) = (next, 0);
        }
        if delaying.reports < REPORTS_AT_ONCE {
            delaying.reports += 1;
            return self.acknowledge(sender, config, now, out);
        }
        delaying.waiting += 1;
        if delaying.waiting == 1 || !is_waiting {
            let round_trip = delaying.growing.round_trip();
            let round_trip = srtt.map_or(round_trip, |srtt| srtt.min(round_trip));
            self.delayed_ack_at = now + (round_trip / 20).min(LONGEST_REPORT) + REPORT_SLACK;
        }
    }

    /// Notes that data goes out. It is an answer if it comes soon after what was heard (tcp_event_data_sent).
    #[inline]
    pub(in crate::endpoint) fn note_answer(&mut self, now: Time) {
        if let Some(delaying) = &mut self.delaying
            && now.since(delaying.heard_at) < delaying.interval
        {
            delaying.answers = delaying.answers.saturating_add(1);
        }
    }

    /// Data came out of order: it is acknowledged at once, and counts for the habits as far as its size goes.
    pub(super) fn note_out_of_order(&mut self, segment: &Segment, config: &Config, now: Time) {
        let is_new_echo = segment.echo != self.peer_echo;
        if let Some(delaying) = &mut self.delaying {
            delaying.is_owed = true;
            if segment.payload > 0 {
                delaying.measure(segment, is_new_echo, config, now);
            }
            // An acknowledgement with another window is no duplicate, and without reports duplicates are all there is
            // to tell of a hole (tcp_data_queue_ofo).
            if config.repair.has_sack() {
                self.grow_window(segment, config);
            }
        }
    }
}
