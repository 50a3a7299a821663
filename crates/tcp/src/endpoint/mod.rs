//! One end of a TCP connection.
//!
//! The driver calls [`Endpoint::on_segment`] for every segment that arrives and [`Endpoint::on_wake`] at or after
//! [`Endpoint::next_wake`]; the application calls [`Endpoint::write`], [`Endpoint::close`] and then
//! [`Endpoint::push`]. Segments to send come out through [`Emit`]. Early or repeated wake-ups are harmless.
//!
//! - `sender.rs`: acknowledgements, loss recovery, the retransmission timer, what may be sent.
//! - `reduction.rs`: how the window comes down gradually. `probe.rs`: losses found by time, tail loss probes.
//! - `counting.rs`: losses found by duplicates, where it does. `pacing.rs`: what may be sent, spread over the round
//!   trip. `sack1.rs`, `newreno.rs`: recovery as ns-2 has it.
//! - `undoing.rs`: needless reductions taken back. `reading.rs`: readers that stop, windows that close.
//! - `delaying.rs`: when acknowledgements wait, where that follows the sender's habits. `growing.rs`: the window,
//!   there.
//! - `idle.rs`: the window after a pause.
//! - `receiver.rs`: data in order and out of order, delayed and selective acknowledgements.
//! - `feedback.rs`: what the two ends tell each other of marks.
//! - `handshake.rs`: opening.
//! - here: the state itself, and closing.
//!
//! # Deviations
//! - Urgent data, RST and simultaneous open do not occur. SYN and FIN carry no data except that a FIN rides on the last
//!   segment; a FIN takes no room in the peer's window, nor in the congestion window unless so configured.
//! - The application reads at once unless it is told to stop ([`Endpoint::hold`]).
//! - There is no Nagle: what is written goes out at once, in a small segment if need be.
//! - A SYN is repeated until its retries are used up; BSD also gives up after 75 s (TCPTV_KEEP_INIT).
//! - Those of loss recovery and the timer are in `sender.rs`.

mod counting;
mod delaying;
mod feedback;
mod growing;
mod handshake;
mod idle;
mod newreno;
mod observing;
mod pacing;
mod probe;
mod reading;
mod receiver;
mod reduction;
mod sack1;
mod sender;
mod undoing;

pub use observing::CongestionState;

use crate::cc::{Chosen, Window};
use crate::outstanding::Outstanding;
use crate::reassembly::Reassembly;
use crate::rtt::RttEstimator;
use crate::segment::{Flags, Segment};
use crate::stack::Config;
use base::{Span, Time};
use feedback::Feedback;
pub(crate) use pacing::{BURSTS, MOST_BURST};

/// Where an endpoint puts the segments it sends.
pub trait Emit {
    /// Sends `segment`.
    fn emit(&mut self, segment: Segment);
}

impl<F: FnMut(Segment)> Emit for F {
    #[inline]
    fn emit(&mut self, segment: Segment) {
        self(segment);
    }
}

/// Stage of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN/ACK sent.
    SynReceived,
    /// Open; closing is told by the FINs.
    Established,
    /// Given up.
    Aborted,
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

/// What an endpoint has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with data or a FIN sent for the first time.
    pub segments: u64,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Expirations of the retransmission timer, of SYN and SYN/ACK too.
    pub timeouts: u32,
    /// Reductions of the window by fast recovery.
    pub recoveries: u32,
    /// Reductions of the window by ECN echo.
    pub ecn_reductions: u32,
    /// Reductions of the window that turned out to be needless and were taken back.
    pub undone: u32,
}

/// The segment being timed, where one is at a time: one past its end, and when it was sent.
#[derive(Clone, Copy, Debug)]
struct Timing {
    end: u64,
    sent_at: Time,
}

impl Timing {
    /// None is.
    const NONE: Self = Self { end: u64::MAX, sent_at: Time::ZERO };
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    // ── opening and closing ──
    state: State,
    /// The application has nothing more to write.
    closing: bool,
    /// The FIN was sent; its acknowledgement is `snd_nxt`.
    fin_sent: bool,
    /// What the ends tell each other of marks.
    feedback: Feedback,
    /// Only the opener sends, as configured.
    is_one_way: bool,
    /// Expirations of the handshake's timer.
    syn_tries: u8,
    /// How often the SYN or SYN/ACK was sent again, for whatever reason.
    syn_repeats: u8,

    // ── sending ──
    /// Whether the window comes down gradually, losses are found by time, and deliveries are counted for either or for
    /// the controller: as configured.
    is_gradual: bool,
    finds_by_time: bool,
    counts_deliveries: bool,
    /// The controller sets window and rate by itself.
    is_modelled: bool,
    /// Whether recovery is ns-2's, as configured, and whether it has anything to do.
    is_sack1: bool,
    sack1_is_busy: bool,
    /// Whether recovery is that of ns-2's other agent.
    is_newreno: bool,
    /// Whether duplicates stand for segments that arrived, as configured.
    counts_duplicates: bool,
    /// What the peer sent last was data: the next of its segments is no duplicate, where they are counted.
    heard_data: bool,
    /// The time of the next probe is to be set anew.
    wants_probe: bool,
    /// What is sent next is to be new data, although something is deemed lost.
    only_new: bool,
    /// The last segment of this recovery has been sent again with nothing else to send (RFC 6675's rescue).
    has_rescued: bool,
    /// What is sent next ends a burst.
    ends_burst: bool,
    phase: Phase,
    /// Oldest sequence number not acknowledged.
    snd_una: u64,
    /// Next sequence number never sent.
    snd_nxt: u64,
    /// One past the last byte the application wrote.
    written: u64,
    peer_window: u64,
    window: Window,
    outstanding: Outstanding,
    rtt: RttEstimator,
    timing: Timing,
    rto_at: Time,
    last_sent_at: Time,
    duplicate_acks: u32,
    /// `snd_nxt` at the last loss: no second fast recovery before it is passed.
    recover: u64,
    /// `snd_nxt` at the last reduction by ECN: at most one a window.
    ecn_recover: u64,
    /// `snd_una` when the timer last expired, and how often it did there.
    timed_out_at: u64,
    expirations: u32,
    /// The earliest of `probe_at`, `reorder_at`, `held_until` and the next paced departure, which most stacks never
    /// need, or earlier than that.
    seldom_at: Time,

    // ── receiving ──
    rcv_nxt: u64,
    held: Reassembly,
    /// The sequence number of the peer's FIN, once it has come; beyond all others before.
    peer_fin: u64,
    /// Bytes in order since the last acknowledgement; a small segment counts as a full one where segments count.
    unacked: u32,
    quick_acks_left: u32,
    delayed_ack_at: Time,
    /// The newest stamp of the peer, to be echoed (TS.Recent).
    peer_stamp: u16,
    /// How much of the window the application used.
    used: idle::Use,
    /// What its last segment echoed (rcv_rtt_last_tsecr).
    peer_echo: u16,
    /// The sender's habits, where acknowledgements follow them.
    delaying: Option<Box<delaying::Delaying>>,
    /// A reader that stopped, or a peer without room: most connections have neither.
    flow: Option<Box<reading::Flow>>,

    stats: Stats,

    // ── sending, what most packets do not touch ──
    controller: Chosen,
    /// ECN echo met a window of one segment: nothing is sent before this instant (RFC 3168 §6.1.2).
    held_until: Time,
    /// When a tail loss probe is due, and the one that is out.
    probe_at: Time,
    probe_end: Option<probe::Probe>,
    /// When what may have been reordered is to be deemed lost.
    reorder_at: Time,
    /// The reduction under way, where it is gradual.
    progress: reduction::Progress,
    /// What it takes to take the last reduction back, once there was one.
    undoing: Option<Box<undoing::Undoing>>,
    /// Recovery as ns-2 has it, where it is configured.
    sack1: Option<Box<sack1::Sack1>>,
    /// What duplicates told, where they are counted and there was one.
    counting: Option<Box<counting::Counting>>,
    /// Pacing, where it is configured.
    pacer: Option<Box<pacing::Pacer>>,
}

impl Endpoint {
    /// A fresh endpoint: call [`Endpoint::open`] on one end and [`Endpoint::listen`] on the other.
    pub fn new(config: &Config) -> Self {
        let outstanding = Outstanding::new(Self::keeps_time(config));
        Self::holding(outstanding, Reassembly::default(), Self::delaying_of(None, config), config)
    }

    /// A fresh endpoint in memory that was another's.
    fn holding(
        outstanding: Outstanding,
        held: Reassembly,
        delaying: Option<Box<delaying::Delaying>>,
        config: &Config,
    ) -> Self {
        let controller = Chosen::new(config);
        let (is_gradual, finds_by_time) = (Self::reduces_gradually(config), Self::finds_by_time(config));
        let sack1 = Self::sack1_of(config);
        Self {
            is_sack1: sack1.is_some() && !Self::recovers_as_newreno(config),
            sack1_is_busy: false,
            is_newreno: Self::recovers_as_newreno(config),
            counts_duplicates: Self::counts_duplicates(config),
            heard_data: false,
            is_gradual,
            finds_by_time,
            wants_probe: false,
            only_new: false,
            has_rescued: false,
            ends_burst: false,
            counts_deliveries: is_gradual || finds_by_time || controller.watches(),
            is_modelled: config.control.models_path(),
            state: State::Listen,
            closing: false,
            fin_sent: false,
            feedback: Feedback::Off,
            is_one_way: config.one_way,
            syn_tries: 0,
            syn_repeats: 0,
            phase: Phase::Open,
            snd_una: 0,
            snd_nxt: 0,
            written: 1,
            peer_window: config.window.min(u64::from(u32::MAX)),
            window: Window { cwnd: f64::from(config.initial_window * config.mss), ssthresh: f64::INFINITY },
            controller,
            outstanding: Self::sampled(outstanding, config),
            rtt: RttEstimator::new(config),
            timing: Timing::NONE,
            rto_at: Time::NEVER,
            probe_at: Time::NEVER,
            probe_end: None,
            reorder_at: Time::NEVER,
            progress: reduction::Progress::default(),
            undoing: None,
            sack1,
            counting: None,
            pacer: Self::pacer_of(config),
            last_sent_at: Time::ZERO,
            duplicate_acks: 0,
            recover: 0,
            ecn_recover: 0,
            timed_out_at: 0,
            expirations: 0,
            held_until: Time::NEVER,
            seldom_at: Time::NEVER,
            rcv_nxt: 0,
            held,
            peer_fin: u64::MAX,
            unacked: 0,
            quick_acks_left: if config.delayed_ack.adapts { 0 } else { config.delayed_ack.quick },
            delayed_ack_at: Time::NEVER,
            peer_stamp: 0,
            peer_echo: 0,
            used: idle::Use::default(),
            delaying,
            flow: None,
            stats: Stats::default(),
        }
    }

    /// Becomes a fresh endpoint, as [`Endpoint::new`] makes it, but keeps its memory.
    pub fn reset(&mut self, config: &Config) {
        let mut outstanding = std::mem::replace(&mut self.outstanding, Outstanding::new(false));
        let mut held = std::mem::take(&mut self.held);
        outstanding.clear(Self::keeps_time(config));
        held.clear();
        let delaying = Self::delaying_of(self.delaying.take(), config);
        *self = Self::holding(outstanding, held, delaying, config);
    }

    /// Opens the connection: sends a SYN, or starts established where the configuration has no handshake.
    pub fn open(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if config.handshake {
            self.state = State::SynSent;
            self.send_syn(config, now, out);
        } else {
            self.establish_at_once(config);
        }
    }

    /// Waits for the connection, or starts established where the configuration has no handshake.
    pub fn listen(&mut self, config: &Config) {
        if !config.handshake {
            self.establish_at_once(config);
        }
    }

    fn establish_at_once(&mut self, config: &Config) {
        self.state = State::Established;
        (self.snd_una, self.snd_nxt, self.rcv_nxt) = (1, 1, 1);
        self.feedback = Feedback::agreed(true, config);
    }

    /// Gives back what an idle connection does not need and the next segment brings again; what is outstanding stays.
    pub fn rest(&mut self) {
        if self.snd_una == self.snd_nxt {
            self.outstanding.rest();
        }
        if self.held.is_empty() {
            self.held = Reassembly::default();
        }
    }

    /// The application writes `bytes` more; not after [`Endpoint::close`]. Call [`Endpoint::push`] afterwards.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.closing, "nothing is written after closing");
        if self.is_modelled {
            self.note_app_limit();
        }
        self.written += bytes;
    }

    /// The application has nothing more to write. Call [`Endpoint::push`] afterwards.
    pub fn close(&mut self) {
        // Where only the opener sends, the other end says nothing when it has heard everything.
        self.closing = !(self.is_one_way && self.peer_fin < u64::MAX);
    }

    /// A segment arrived.
    pub fn on_segment(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        match self.state {
            State::Established => {
                if segment.flags.has(Flags::SYN) && config.one_way {
                    self.answer_one_way(config, now, out);
                    return;
                }
                if segment.flags.has(Flags::SYN) {
                    // The acknowledgement of a SYN/ACK was lost: say it again.
                    self.send_ack(config, now, out);
                    return;
                }
                self.process(segment, config, now, out);
            }
            State::Listen if segment.flags.has(Flags::SYN) => {
                self.rcv_nxt = 1;
                self.peer_window = u64::from(segment.window);
                self.peer_stamp = segment.stamp;
                self.feedback = Feedback::agreed(segment.flags.has(Flags::ECE.with(Flags::CWR)), config);
                if config.one_way {
                    self.answer_one_way(config, now, out);
                    return;
                }
                self.state = State::SynReceived;
                self.send_synack(config, now, out);
            }
            State::SynSent if segment.flags.has(Flags::SYN.with(Flags::ACK)) => {
                self.on_synack(segment, config, now, out);
            }
            State::SynReceived if segment.flags.has(Flags::SYN) => self.repeat_handshake(config, now, out),
            State::SynReceived => self.on_handshake_ack(segment, config, now, out),
            State::Listen | State::SynSent | State::Aborted => {}
        }
    }

    /// The instant at which [`Endpoint::on_wake`] has something to do; [`Time::NEVER`] if none. Every other call may
    /// change it.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.rto_at.min(self.delayed_ack_at).min(self.seldom_at)
    }

    /// Does what is due at `now`.
    pub fn on_wake(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if now >= self.delayed_ack_at {
            self.note_delay_was_vain(config);
            self.send_ack(config, now, out);
        }
        if now >= self.reorder_at {
            self.reorder_at = Time::NEVER;
            self.on_reorder_timer(config, now, out);
        }
        if now >= self.probe_at {
            self.on_probe_timer(config, now, out);
        }
        if now >= self.persist_at() {
            self.on_persist_timer(config, now, out);
        }
        if now >= self.rto_at {
            match self.state {
                State::Established => self.on_timeout(config, now, out),
                State::SynSent => self.retry_syn(&config.syn_timer, config, now, out),
                State::SynReceived => self.retry_syn(&config.synack_timer, config, now, out),
                State::Listen | State::Aborted => self.rto_at = Time::NEVER,
            }
        }
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
    pub(super) fn note_seldom(&mut self) {
        let paced_at = self.pacer.as_ref().map_or(Time::NEVER, |pacer| pacer.wakes_at());
        self.seldom_at = self.held_until.min(self.probe_at).min(self.reorder_at).min(self.persist_at()).min(paced_at);
    }

    /// Gives the connection up: nothing is due any more.
    #[cold]
    fn give_up(&mut self) {
        self.state = State::Aborted;
        (self.rto_at, self.delayed_ack_at, self.held_until) = (Time::NEVER, Time::NEVER, Time::NEVER);
        (self.probe_at, self.reorder_at) = (Time::NEVER, Time::NEVER);
        if let Some(flow) = &mut self.flow {
            flow.persist = None;
        }
        self.call_off_departure();
        self.note_seldom();
    }

    /// Bytes that arrived in order, and so reached the application.
    pub fn received(&self) -> u64 {
        let fin = u64::from(self.rcv_nxt > self.peer_fin);
        self.rcv_nxt.saturating_sub(1) - fin - self.unread()
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        let fin_acked = self.fin_sent && self.snd_una == self.snd_nxt;
        self.snd_una.saturating_sub(1) - u64::from(fin_acked)
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the handshake was ever done, also of one that was given up since.
    pub fn was_established(&self) -> bool {
        self.snd_una > 0
    }

    /// Whether the application has said that it has nothing more to write.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether everything the peer will ever send has arrived, its FIN included.
    pub fn peer_closed(&self) -> bool {
        self.rcv_nxt > self.peer_fin && self.unread() == 0
    }

    /// Whether nothing is left to do: both FINs sent and acknowledged, or given up.
    pub fn is_done(&self) -> bool {
        let (has_sent, has_heard) = (self.fin_sent && self.snd_una == self.snd_nxt, self.peer_closed());
        self.is_aborted() || has_sent && has_heard || self.is_one_way && (has_sent || has_heard)
    }

    /// Whether the connection was given up after too many retries.
    pub fn is_aborted(&self) -> bool {
        self.state == State::Aborted
    }

    /// What it has done so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// Slow-start threshold, bytes; infinite before the first reduction.
    pub fn ssthresh(&self) -> f64 {
        self.window.ssthresh
    }

    /// Smoothed round-trip time, once measured.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// A segment of an open connection: its acknowledgement first, then its data, then what may be sent now.
    fn process(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        let mut may_send = false;
        if config.timestamps && segment.seq <= self.rcv_nxt.saturating_sub(u64::from(self.unacked)) {
            // RFC 7323 §4.3: of the segment that the last acknowledgement asked for, not of one that came since.
            self.peer_stamp = segment.stamp;
        }
        if self.is_window_probe(segment) {
            self.send_ack(config, now, out);
        }
        if segment.flags.has(Flags::ACK) {
            may_send = self.on_ack(segment, config, now, out);
        }
        if segment.payload > 0 || segment.flags.has(Flags::FIN) {
            self.on_data(segment, config, now, out);
        }
        self.peer_echo = segment.echo;
        if may_send {
            self.push(config, now, out);
        }
    }
}
