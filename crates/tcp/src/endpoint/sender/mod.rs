//! The sending half decides what may be sent, what is lost, and when to try again.
//!
//! | what | where |
//! |---|---|
//! | an acknowledgement is read and acted on | `acks.rs` |
//! | ... quickly, while nothing is missing (the plain path) | `plain.rs` |
//! | segments are sent, lost ones first, as the windows allow | `sending.rs` |
//! | losses are found and repaired in one of seven ways, which the configuration chooses | `repair.rs` |
//! | ... by the retransmission timer, when all else fails | `timeout.rs` |
//! | ... by counting duplicate acknowledgements, as Linux does without SACK | `counting.rs` |
//! | ... by time, with probes for lost tails (RACK-TLP) | `probe.rs` |
//! | ... as ns-2 does | `sack1.rs`, `newreno.rs`; marks and the timer after them: `ns2.rs` |
//! | a reduction is taken back when it proves needless | `undoing.rs` |
//! | the window comes down, at once or over a round trip | `reduction.rs` |
//! | the window comes down after a pause, and does not grow while it is not used | `idle.rs` |
//! | segments are spread over the round trip | `pacing.rs` |
//! | a peer that has no room is asked for some | `persist.rs` |
//!
//! The congestion controller ([`crate::cc`]) says how the window grows, and how far down it comes.
//!
//! # Deviations
//! - RFC 6582: every partial acknowledgement restarts the timer, not the first alone. This is the variant that its §4
//!   calls "slow but steady"; BSD has it too.
//! - RFC 6675: a segment is deemed lost when three segments above it are reported; bytes are not counted. Rule 3 of
//!   `NextSeg` is not there; rule 4, the rescue, is (`probe.rs`). The sender remembers over a timeout what
//!   was reported, since receivers here never discard what they have reported.
//! - RFC 6298: fast retransmit restarts the timer, as BSD and Linux do. Where every acknowledgement is measured, an
//!   acknowledgement of new data ends the back-off, with timestamps or without.
//! - RFC 5681 §3.1: FlightSize is never more than the window. Otherwise a second reduction, or a timeout during
//!   repairs, would count lost segments as segments in the network. Where the window comes down gradually, the window
//!   itself stands for FlightSize, as in Linux.
//! - Of Linux, all rare: an acknowledgement of retransmissions alone gives no round trip to a controller nor to RACK,
//!   where tcp_ack_update_rtt takes that of the timestamp; a partial acknowledgement starts the timer anew while a
//!   probe of old data is out, where tcp_rearm_rto counts from the head's sending; and retransmissions deemed lost
//!   stay in what must come twice for a reduction to be undone.

mod acks;
mod counting;
mod idle;
mod newreno;
mod ns2;
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
use crate::stack::{Config, EcnMode};
use base::{Ecn, Time};
use reduction::Descent;
use repair::Repair;

/// A sender's way out: the receiver of the same endpoint adds the acknowledgement to each segment, and `emit` takes it.
pub(super) struct Outlet<'a, E> {
    pub receiver: &'a mut Receiver,
    pub emit: &'a mut E,
}

impl<E: Emit> Outlet<'_, E> {
    /// Sends a segment with data or a FIN.
    #[inline(always)]
    fn send(&mut self, seq: u64, payload: u32, flags: Flags, ecn: Ecn, config: &Config, now: Time) {
        let segment = self.receiver.segment(seq, payload, flags, ecn, config, now);
        let echo = &self.receiver.echo;
        if echo.has_option() && (payload == 0 || echo.has_option_with_data()) {
            let copy = segment;
            return self.receiver.emit_with_option(&copy, None, now, self.emit);
        }
        self.emit.emit(segment);
    }
}

/// How far a sender has come with the repair of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is being repaired.
    Open,
    /// Fast recovery, until everything sent at its start is acknowledged.
    Recovery,
    /// After a timeout, until everything sent before it is acknowledged.
    Timeout,
    /// Nothing is being repaired, but the window is coming down after an ECN echo, until something sent since then is
    /// acknowledged. This stage exists only where the window comes down gradually.
    Reducing,
}

base::packed!(Phase: Open | Recovery | Timeout | Reducing);

/// The segment whose round trip is being measured, where one segment a window is.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Timing {
    /// The sequence number after it.
    end: u64,
    sent_at: Time,
}

base::packed!(Timing { end, sent_at });

impl Timing {
    /// No segment is being timed.
    const NONE: Self = Self { end: u64::MAX, sent_at: Time::ZERO };
}

/// The last expiration of the retransmission timer, as long as it was not taken back.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Expired {
    /// `snd_una` at that time.
    at: u64,
    /// How often the timer has expired since `snd_una` reached this value.
    times: u32,
}

base::packed!(Expired { at, times });

/// The sending half of an endpoint.
#[derive(Clone, PartialEq, Debug)]
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
    /// The segments between the two.
    outstanding: Outstanding,

    // ── the windows ──
    pub(super) peer_window: u64,
    pub(super) window: Window,
    /// What AccECN options take of new segments.
    room_of_option: u32,
    controller: Chosen,
    /// How much of the window the application used.
    used: idle::Use,
    /// How the window comes down, and how far it has come.
    descent: Descent,
    /// How the peer echoes marks, and what it has echoed.
    pub(super) heard: Heard,
    /// `snd_nxt` at the last reduction by ECN. Marks cause at most one reduction a window.
    ecn_recover: u64,
    /// Nothing is sent before this instant: an ECN echo met a window of one segment (RFC 3168 §6.1.2).
    held_until: Time,

    // ── repair ──
    phase: Phase,
    /// How losses are found and repaired, and the state of it.
    repair: Repair,
    duplicate_acks: u32,
    /// `snd_nxt` at the last loss. No second fast recovery begins before this is acknowledged.
    recover: u64,
    /// The repair or the controller needs to know how many bytes each acknowledgement delivers.
    counts_deliveries: bool,
    /// Only new data may be sent next, although something is deemed lost (F-RTO).
    only_new: bool,
    /// What is needed to take the last reduction back; `None` before the first reduction.
    undoing: Option<Box<undoing::Undoing>>,

    // ── time ──
    pub(super) rtt: RttEstimator,
    timing: Timing,
    pub(super) last_sent_at: Time,
    /// When the retransmission timer expires; during the handshake, when its timer does.
    pub(super) rto_at: Time,
    expired: Expired,
    /// The earliest of the timers that seldom run, or an earlier instant: `held_until`, the timers of the repair, the
    /// next paced departure, the next window probe.
    seldom_at: Time,
    /// Pacing, where it is configured.
    pacer: Option<Box<pacing::Pacer>>,
    /// The window probes, while the peer has no room. Most connections never have any.
    persist: Option<Box<persist::Persist>>,

    pub(super) stats: Stats,
}

base::packed!(Sender {
    written,
    closing,
    fin_sent,
    snd_una,
    snd_nxt,
    outstanding,
    peer_window,
    window,
    room_of_option,
    controller,
    used,
    descent,
    heard,
    ecn_recover,
    held_until,
    phase,
    repair,
    duplicate_acks,
    recover,
    counts_deliveries,
    only_new,
    undoing,
    rtt,
    timing,
    last_sent_at,
    rto_at,
    expired,
    seldom_at,
    pacer,
    persist,
    stats,
});

impl Sender {
    /// A sender with nothing sent.
    pub fn new(config: &Config) -> Self {
        let outstanding = Outstanding::new(Repair::keeps_time(config));
        Self::holding(outstanding, Chosen::new(config), Self::pacer_of(None, config), config)
    }

    /// A sender with nothing sent, with new parts, or in the memory of former ones.
    fn holding(
        outstanding: Outstanding,
        controller: Chosen,
        pacer: Option<Box<pacing::Pacer>>,
        config: &Config,
    ) -> Self {
        let repair = Repair::new(config);
        let descent = Descent::new(&repair, config);
        let needs_deliveries = descent.is_gradual() || repair.is_rack() || config.ecn == EcnMode::Accurate;
        Self {
            written: 1,
            closing: false,
            fin_sent: false,
            snd_una: 0,
            snd_nxt: 0,
            outstanding: Self::sampled(outstanding, config),
            peer_window: config.window.min(u64::from(u32::MAX)),
            window: Window { cwnd: f64::from(config.initial_window * config.mss), ssthresh: f64::INFINITY },
            room_of_option: 0,
            counts_deliveries: needs_deliveries || controller.watches(),
            controller,
            used: idle::Use::default(),
            descent,
            heard: Heard::OFF,
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
            pacer,
            persist: None,
            stats: Stats::default(),
        }
    }

    /// Starts again as a new sender, and keeps its memory.
    pub fn reset(&mut self, config: &Config) {
        let mut outstanding = std::mem::replace(&mut self.outstanding, Outstanding::new(false));
        outstanding.clear(Repair::keeps_time(config));
        let mut controller = std::mem::replace(&mut self.controller, Chosen::placeholder());
        controller.renew(config);
        let pacer = Self::pacer_of(self.pacer.take(), config);
        *self = Self::holding(outstanding, controller, pacer, config);
    }

    /// Whether nothing is outstanding.
    pub fn is_idle(&self) -> bool {
        self.snd_una == self.snd_nxt
    }

    /// Forgets what losses have told; not while anything is outstanding.
    pub fn rest(&mut self) {
        self.outstanding.rest();
    }

    /// Asks for the records of what is outstanding.
    #[inline(always)]
    pub fn fetch_records(&self) {
        self.outstanding.fetch();
    }

    /// Adds `bytes` to what the application has written.
    pub fn write(&mut self, bytes: u64) {
        if self.outstanding.sampler.is_some() {
            self.note_app_limit();
        }
        self.written += bytes;
    }

    /// When the next of its timers expires.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.rto_at.min(self.seldom_at)
    }

    /// Runs those of the seldom timers that go before the retransmission timer. Returns whether the connection is to be
    /// given up.
    pub fn on_seldom(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        if now >= self.repair.reorder_at() {
            self.on_reorder_timer(config, now, out);
        }
        if now >= self.repair.probe_at() {
            self.on_probe_timer(config, now, out);
        }
        now >= self.persist_at() && self.on_persist_timer(config, now, out)
    }

    /// Sends the burst that is to depart at `now`, if nothing else is due then and the plain path can. Returns whether
    /// it did.
    #[inline(always)]
    pub fn departs_plainly(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        let is_alone = now >= self.departs_at() && now < self.rto_at && now < self.repair.wakes_at();
        is_alone && self.departs_straight(config, now, out)
    }

    /// Sends what had to wait, either after an ECN echo or for its paced departure, which goes the short way if `SHORT`
    /// allows it.
    pub fn on_departure<const SHORT: bool>(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        // This runs after the retransmission timer, which deems everything outstanding lost: new data must not go out
        // ahead of that.
        if now >= self.held_until {
            self.held_until = Time::NEVER;
            self.push_generally(config, now, out);
        }
        if now >= self.departs_at() {
            match SHORT {
                true => self.push(config, now, out),
                false => self.push_generally(config, now, out),
            }
        }
        self.note_seldom();
    }

    /// Brings `seldom_at` up to date. It is called after one of the seldom timers was set; one that was called off may
    /// still cause a call.
    #[inline]
    fn note_seldom(&mut self) {
        let departs_at = self.departs_at();
        self.seldom_at = self.held_until.min(self.repair.wakes_at()).min(self.persist_at()).min(departs_at);
    }

    /// Calls off all timers, since the connection is given up.
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

    /// Whether what is unsent fills segments, without a short one at the end.
    pub fn has_whole_unsent(&self, config: &Config) -> bool {
        let unsent = self.unsent();
        unsent > 0 && unsent.is_multiple_of(u64::from(config.mss - self.room_of_option))
    }

    /// Bytes that the application wrote and that were not sent yet.
    #[inline(always)]
    fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.snd_nxt)
    }

    /// Bytes thought to be in the network.
    #[inline]
    fn pipe(&self) -> u64 {
        self.outstanding.pipe(self.snd_nxt - self.snd_una)
    }

    /// How many segments are thought to be in the network, however short each is.
    pub fn segments_in_flight(&self) -> u32 {
        self.outstanding.pipe_segments()
    }

    /// How many bytes of the congestion window are taken by what is thought to be in the network. A window of segments
    /// counts each as a full one, however short it is (tcp_packets_in_flight).
    #[inline]
    fn taken(&self, config: &Config) -> u64 {
        match config.whole_segments {
            true => u64::from(self.outstanding.pipe_segments()) * u64::from(config.mss),
            false => self.pipe(),
        }
    }

    /// The same of everything outstanding, wherever it is thought to be.
    #[inline(always)]
    fn taken_by_all(&self, config: &Config) -> u64 {
        match config.whole_segments {
            true => self.outstanding.len() as u64 * u64::from(config.mss),
            false => self.snd_nxt - self.snd_una,
        }
    }

    /// Whether there is something to send that the peer's window does not let out.
    pub fn is_held_by_receiver(&self, config: &Config) -> bool {
        let in_flight = self.snd_nxt - self.snd_una;
        self.next_new(config).is_some_and(|(len, _)| in_flight + u64::from(len) > self.peer_window)
    }

    /// The congestion state, in the words of Linux.
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
