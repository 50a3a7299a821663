//! The sending half decides what may be sent, what is lost, and when to try again.
//!
//! | what | where |
//! |---|---|
//! | what an acknowledgement tells, and what follows | `acks.rs` |
//! | ... where nothing is missing: the plain path | `plain.rs` |
//! | what is sent: the windows, segments new and old | `sending.rs` |
//! | how losses are found and repaired: the ways, one of which a connection has | `repair.rs` |
//! | ... the timer of retransmissions, where everything else failed | `timeout.rs` |
//! | ... by the duplicates that stand for segments | `counting.rs` |
//! | ... by time, and by probes of a silent tail | `probe.rs` |
//! | ... as ns-2 does | `sack1.rs`, `newreno.rs` |
//! | ... and what was needless is taken back | `undoing.rs` |
//! | how the window comes down, at once or over a round trip | `reduction.rs` |
//! | the window after a pause | `idle.rs` |
//! | what is sent is spread over the round trip | `pacing.rs` |
//! | the peer has no room | `persist.rs` |
//!
//! How the window grows, and how far down it comes, is the controller's to say ([`crate::cc`]).
//!
//! # Deviations
//! - RFC 6582: every partial acknowledgement restarts the timer, not the first alone ("slow but steady" of its §4, as
//!   BSD does).
//! - RFC 6675: a segment is lost when three segments above it are reported, bytes are not looked at. Nothing that is
//!   not deemed lost is sent again (no rules 3 and 4 of `NextSeg`), so that a loss among the last three segments of a
//!   recovery waits for the timer. What was reported stays known after a timeout, for receivers here never take it
//!   back.
//! - RFC 6298: fast retransmit restarts the timer, as BSD and Linux do. Where every acknowledgement is measured, one of
//!   new data ends the back-off, with timestamps or without.
//! - RFC 5681 §3.1: no more than the window counts as FlightSize, so that a second reduction, or a timeout in the midst
//!   of repairs, does not take what is deemed lost for what is in the network. Where the window comes down gradually,
//!   the whole of it counts, as in Linux.

mod acks;
mod counting;
mod idle;
mod newreno;
mod pacing;
mod persist;
mod plain;
mod probe;
mod reduction;
mod repair;
mod sack1;
mod sending;
mod timeout;
mod undoing;

use super::Emit;
use super::feedback::Heard;
use super::observing::{CongestionState, Stats};
use super::receiver::Receiver;
use crate::cc::{Chosen, Window};
use crate::outstanding::Outstanding;
use crate::rtt::RttEstimator;
use crate::segment::Flags;
use crate::stack::Config;
use base::{Ecn, Time};
pub(crate) use pacing::{BURSTS, MOST_BURST};
use reduction::Descent;
use repair::Repair;

/// The way out for what a sender sends: the receiver of its own end puts an acknowledgement on each segment.
pub(super) struct Outlet<'a, E> {
    pub receiver: &'a mut Receiver,
    pub emit: &'a mut E,
}

impl<E: Emit> Outlet<'_, E> {
    /// Sends a segment with data or a FIN.
    #[inline(always)]
    fn send(&mut self, seq: u64, payload: u32, flags: Flags, ecn: Ecn, config: &Config, now: Time) {
        let segment = self.receiver.segment(seq, payload, flags, ecn, config, now);
        self.emit.emit(segment);
    }
}

/// Stage of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is being repaired.
    Open,
    /// Fast recovery, until everything sent at its start is acknowledged.
    Recovery,
    /// After a timeout, until everything sent before it is acknowledged.
    Timeout,
    /// Nothing is being repaired, but the window is coming down after an ECN echo, until something sent since is
    /// acknowledged. Only where it comes down gradually.
    Reducing,
}

/// The segment being timed, where one is at a time: one past its end, and when it was sent.
#[derive(Clone, Copy, Debug)]
struct Timing {
    end: u64,
    sent_at: Time,
}

impl Timing {
    /// No segment is being timed.
    const NONE: Self = Self { end: u64::MAX, sent_at: Time::ZERO };
}

/// Where the timer of retransmissions expired last: `snd_una` then, and how often it did there.
#[derive(Clone, Copy, Debug, Default)]
struct Expired {
    at: u64,
    times: u32,
}

/// The sending half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    // ── the stream ──
    /// One past the last byte the application wrote.
    written: u64,
    /// The application has nothing more to write.
    pub(super) closing: bool,
    /// The FIN was sent; its acknowledgement is `snd_nxt`.
    pub(super) fin_sent: bool,
    /// Oldest sequence number not acknowledged.
    pub(super) snd_una: u64,
    /// Next sequence number never sent.
    pub(super) snd_nxt: u64,
    /// What lies between the two.
    outstanding: Outstanding,

    // ── the windows ──
    pub(super) peer_window: u64,
    pub(super) window: Window,
    controller: Chosen,
    /// How much of the window the application used.
    used: idle::Use,
    /// How the window comes down.
    descent: Descent,
    /// What is told of marks.
    pub(super) heard: Heard,
    /// `snd_nxt` at the last reduction by ECN: at most one a window.
    ecn_recover: u64,
    /// ECN echo met a window of one segment: nothing is sent before this instant (RFC 3168 §6.1.2).
    held_until: Time,

    // ── repair ──
    phase: Phase,
    /// How losses are found and repaired, and what that takes.
    repair: Repair,
    duplicate_acks: u32,
    /// `snd_nxt` at the last loss: no second fast recovery before it is passed.
    recover: u64,
    /// It is counted what each acknowledgement delivers, for the repair or for the controller.
    counts_deliveries: bool,
    /// What is sent next is to be new data, although something is deemed lost.
    only_new: bool,
    /// What it takes to take the last reduction back, once there was one.
    undoing: Option<Box<undoing::Undoing>>,

    // ── time ──
    pub(super) rtt: RttEstimator,
    timing: Timing,
    pub(super) last_sent_at: Time,
    /// When the timer of retransmissions expires, or that of the handshake.
    pub(super) rto_at: Time,
    expired: Expired,
    /// The earliest of the timers that most stacks never need, or earlier than that: `held_until`, those of the repair,
    /// the next paced departure, the next question for room.
    seldom_at: Time,
    /// Pacing, where it is configured.
    pacer: Option<Box<pacing::Pacer>>,
    /// A peer without room: most connections have none.
    persist: Option<Box<persist::Persist>>,

    pub(super) stats: Stats,
}

impl Sender {
    /// A fresh one.
    pub fn new(config: &Config) -> Self {
        Self::holding(Outstanding::new(Repair::keeps_time(config)), config)
    }

    /// A fresh one in memory that was another's.
    fn holding(outstanding: Outstanding, config: &Config) -> Self {
        let (controller, repair) = (Chosen::new(config), Repair::new(config));
        let descent = Descent::new(&repair, config);
        let needs_deliveries = descent.is_gradual() || repair.is_rack();
        Self {
            written: 1,
            closing: false,
            fin_sent: false,
            snd_una: 0,
            snd_nxt: 0,
            outstanding: Self::sampled(outstanding, config),
            peer_window: config.window.min(u64::from(u32::MAX)),
            window: Window { cwnd: f64::from(config.initial_window * config.mss), ssthresh: f64::INFINITY },
            counts_deliveries: needs_deliveries || controller.watches(),
            controller,
            used: idle::Use::default(),
            descent,
            heard: Heard::Off,
            ecn_recover: 0,
            held_until: Time::NEVER,
            phase: Phase::Open,
            repair,
            duplicate_acks: 0,
            recover: 0,
            only_new: false,
            undoing: None,
            rtt: RttEstimator::new(config),
            timing: Timing::NONE,
            last_sent_at: Time::ZERO,
            rto_at: Time::NEVER,
            expired: Expired::default(),
            seldom_at: Time::NEVER,
            pacer: Self::pacer_of(config),
            persist: None,
            stats: Stats::default(),
        }
    }

    /// Becomes a fresh one but keeps its memory.
    pub fn reset(&mut self, config: &Config) {
        let mut outstanding = std::mem::replace(&mut self.outstanding, Outstanding::new(false));
        outstanding.clear(Repair::keeps_time(config));
        *self = Self::holding(outstanding, config);
    }

    /// Gives back what it does not need while nothing is outstanding.
    pub fn rest(&mut self) {
        if self.snd_una == self.snd_nxt {
            self.outstanding.rest();
        }
    }

    /// The application writes `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        if self.outstanding.sampler.is_some() {
            self.note_app_limit();
        }
        self.written += bytes;
    }

    /// When something is to be done.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.rto_at.min(self.seldom_at)
    }

    /// Does what the seldom timers ask for that go before the timer of retransmissions. Returns whether the connection
    /// is to be given up.
    pub fn on_seldom(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        if now >= self.repair.reorder_at() {
            self.on_reorder_timer(config, now, out);
        }
        if now >= self.repair.probe_at() {
            self.on_probe_timer(config, now, out);
        }
        now >= self.persist_at() && self.on_persist_timer(config, now, out)
    }

    /// Sends what had to wait, for an echo's sake or for its departure.
    pub fn on_departure(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        // After the timer: what is outstanding then is lost, and nothing new may go out ahead of it.
        if now >= self.held_until {
            self.held_until = Time::NEVER;
            self.push(config, now, out);
        }
        if self.pacer.as_ref().is_some_and(|pacer| now >= pacer.wakes_at()) {
            self.push(config, now, out);
        }
        self.note_seldom();
    }

    /// Brings `seldom_at` up to date: after one of its timers was set. One that was called off may still wake.
    #[inline]
    fn note_seldom(&mut self) {
        let paced_at = self.pacer.as_ref().map_or(Time::NEVER, |pacer| pacer.wakes_at());
        self.seldom_at = self.held_until.min(self.repair.wakes_at()).min(self.persist_at()).min(paced_at);
    }

    /// The connection is given up: nothing is due any more.
    pub fn give_up(&mut self) {
        (self.rto_at, self.held_until) = (Time::NEVER, Time::NEVER);
        self.repair.call_off();
        self.persist = None;
        self.call_off_departure();
        self.note_seldom();
    }

    /// Whether everything was sent and acknowledged, the FIN included.
    pub fn has_sent_all(&self) -> bool {
        self.fin_sent && self.snd_una == self.snd_nxt
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.snd_una.saturating_sub(1) - u64::from(self.has_sent_all())
    }

    /// Bytes thought to be in the network.
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.outstanding.pipe(self.snd_nxt - self.snd_una)
    }

    /// Whether there is something to send that the peer's window does not let out.
    pub fn is_held_by_receiver(&self, config: &Config) -> bool {
        let in_flight = self.snd_nxt - self.snd_una;
        self.next_new(config).is_some_and(|(len, _)| in_flight + u64::from(len) > self.peer_window)
    }

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
}
