//! An [`Endpoint`] is one end of a TCP connection.
//!
//! The driver calls [`Endpoint::on_segment`] for every segment that arrives and [`Endpoint::on_wake`] at or after
//! [`Endpoint::next_wake`]; the application calls [`Endpoint::write`], [`Endpoint::close`] or
//! [`Endpoint::finish`], and then [`Endpoint::push`]. Segments to send come out through [`Emit`]. Early or repeated
//! wake-ups are harmless.
//!
//! An endpoint is a sender and a receiver, each with its own state, and the stage of the connection:
//!
//! | what | where |
//! |---|---|
//! | acknowledgements, repair, windows, timers, pacing | `sender/` |
//! | reassembly, delayed acknowledgements, windows offered, the echo of marks | `receiver/` |
//! | what the two ends tell each other of marks, in both halves | `feedback.rs`, `accurate.rs`, `option.rs` |
//! | opening | `handshake.rs` |
//! | what can be seen from outside | `observing.rs` |
//! | the short way for most segments | `plain.rs`; `both_ways.rs` compares it with the general way |
//! | segments and wake-ups to the half that they are for; closing | here |
//!
//! The halves meet at two places. Whatever the sender sends carries the receiver's acknowledgement
//! ([`Outlet`]), and the receiver reads the sender for sequence number and round-trip time.
//!
//! # Deviations
//! - Urgent data, RST and simultaneous open do not occur. SYN and FIN carry no data except that a FIN rides on the last
//!   segment where that is still unsent; a FIN takes no room in the peer's window, nor in the congestion window
//!   unless so configured.
//! - The application reads at once unless it is told to stop ([`Endpoint::hold`]).
//! - There is no Nagle: what is written goes out at once, in a small segment if need be, but for one that a FIN is to
//!   ride on ([`Endpoint::finish`]).
//! - A SYN is repeated until its retries are used up; BSD also gives up after 75 s (TCPTV_KEEP_INIT).
//! - The deviations of loss recovery and of the timer are listed in `sender/mod.rs`.

mod accurate;
mod both_ways;
mod feedback;
mod handshake;
mod observing;
mod option;
mod option_linux;
mod plain;
mod receiver;
mod sender;
mod wraps_linux;

pub use observing::{CongestionState, Stats};

use crate::segment::{Flags, Segment};
use crate::stack::Config;
use base::{Ecn, Time};
use feedback::Feedback;
use receiver::Receiver;
use sender::{Outlet, Sender};

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

base::packed!(State: Listen | SynSent | SynReceived | Established | Aborted);

/// One end of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Endpoint {
    state: State,
    /// Only the opener sends, as configured.
    is_one_way: bool,
    /// Expirations of the handshake's timer.
    syn_tries: u8,
    /// How often the SYN or SYN/ACK was sent again, for whatever reason.
    syn_repeats: u8,
    /// The ECN field of the last SYN or SYN/ACK that was sent.
    sent_field: Ecn,
    sender: Sender,
    receiver: Receiver,
}

base::packed!(Endpoint { state, is_one_way, syn_tries, syn_repeats, sent_field, sender, receiver });

impl Endpoint {
    /// A new endpoint: call [`Endpoint::open`] on one end and [`Endpoint::listen`] on the other.
    pub fn new(config: &Config) -> Self {
        Self {
            state: State::Listen,
            is_one_way: config.one_way,
            syn_tries: 0,
            syn_repeats: 0,
            sent_field: Ecn::NotEct,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
        }
    }

    /// Becomes a new endpoint, as [`Endpoint::new`] makes it, but keeps the memory it has.
    pub fn reset(&mut self, config: &Config) {
        (self.state, self.is_one_way) = (State::Listen, config.one_way);
        (self.syn_tries, self.syn_repeats, self.sent_field) = (0, 0, Ecn::NotEct);
        self.sender.reset(config);
        self.receiver.reset(config);
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
        (self.sender.snd_una, self.sender.snd_nxt, self.receiver.rcv_nxt) = (1, 1, 1);
        self.agree(Feedback::both(config), config);
    }

    /// Whether nothing is outstanding, missing or due.
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle() && self.receiver.is_idle() && self.next_wake() == Time::NEVER
    }

    /// Forgets what losses have told, which does not matter while the endpoint [is idle](Self::is_idle).
    pub fn rest(&mut self) {
        self.sender.rest();
        self.receiver.rest();
    }

    /// Asks for what it points to: records of what is outstanding, and of what arrived beyond a hole.
    #[inline(always)]
    pub fn fetch_records(&self) {
        self.sender.fetch_records();
        self.receiver.fetch_held();
    }

    /// Takes `bytes` more from the application; not after [`Endpoint::close`]. Call [`Endpoint::push`] afterwards.
    pub fn write(&mut self, bytes: u64) {
        assert!(!self.sender.closing, "nothing is written after closing");
        self.sender.write(bytes);
    }

    /// Notes that the application has nothing more to write, and closes by a call of its own. Full segments of what it
    /// wrote are sent before that, so that a FIN goes alone behind them. A short last segment waits for the call
    /// (MSG_MORE) and carries the FIN. Call [`Endpoint::push`] afterwards.
    pub fn finish(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.sender.has_whole_unsent(config) && !config.one_way {
            self.push(config, now, out);
        }
        self.close();
    }

    /// Notes that the application has nothing more to write. Call [`Endpoint::push`] afterwards.
    pub fn close(&mut self) {
        // Where only the opener sends, the other end says nothing when it has heard everything.
        self.sender.closing = !(self.is_one_way && self.receiver.peer_fin < u64::MAX);
    }

    /// Sends what may be sent.
    #[inline]
    pub fn push(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if cfg!(feature = "both-ways") {
            let generally = |end: &mut Self, out: &mut _| end.push_generally(config, now, out);
            let shortly = |end: &mut Self, out: &mut _| end.push_shortly(config, now, out);
            self.both_ways(&"what the application did", out, generally, shortly);
        } else {
            self.push_shortly(config, now, out);
        }
    }

    #[inline(always)]
    fn push_shortly(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.state == State::Established {
            self.sender.push(config, now, &mut Outlet { receiver: &mut self.receiver, emit: out });
        } else {
            self.sender.call_off_departure();
        }
    }

    /// Sends what may be sent, without the short way of the plain path: tests compare the two.
    pub fn push_generally(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.state == State::Established {
            self.sender.push_generally(config, now, &mut Outlet { receiver: &mut self.receiver, emit: out });
        } else {
            self.sender.call_off_departure();
        }
    }

    /// Notes that the application stops reading: what arrives takes room from now on.
    pub fn hold(&mut self, config: &Config) {
        self.receiver.hold(config);
    }

    /// Lets the application read up to `bytes` of what waits.
    pub fn read(&mut self, bytes: u64, config: &Config, now: Time, out: &mut impl Emit) {
        if self.receiver.read(bytes, config, now) && self.state == State::Established {
            self.receiver.acknowledge(&self.sender, config, now, out);
        }
    }

    /// Lets the application read all that waits and whatever arrives from now on.
    pub fn resume(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if self.receiver.resume(config, now) && self.state == State::Established {
            self.receiver.acknowledge(&self.sender, config, now, out);
        }
    }

    /// Takes a segment that arrived.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        if cfg!(feature = "both-ways") {
            let generally = |end: &mut Self, out: &mut _| end.on_segment_generally(segment, config, now, out);
            let shortly = |end: &mut Self, out: &mut _| end.on_segment_shortly(segment, config, now, out);
            self.both_ways(segment, out, generally, shortly);
        } else {
            self.on_segment_shortly(segment, config, now, out);
        }
    }

    #[inline(always)]
    fn on_segment_shortly(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        if !self.take_plainly(segment, config, now, out) {
            self.take::<true>(segment, config, now, out);
        }
    }

    /// Takes a segment of any kind, without a short way. The [plain path](Endpoint::on_segment) is a short cut through
    /// this, and tests compare the two.
    pub fn on_segment_generally(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.take::<false>(segment, config, now, out);
    }

    /// Takes a segment of any kind. What may be sent afterwards is sent the short way where `SHORT` allows it.
    #[inline(never)]
    fn take<const SHORT: bool>(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.sender.reckon_probe(config);
        match self.state {
            State::Established if !segment.flags.has(Flags::SYN) => self.process::<SHORT>(segment, config, now, out),
            // An answer that comes twice tells nothing.
            State::Established if config.one_way && segment.flags.has(Flags::ACK) => {}
            State::Established if config.one_way => self.answer_one_way(config, now, out),
            // The acknowledgement of a SYN/ACK was lost, or is on its way yet: say it again.
            State::Established => self.acknowledge_synack(segment.ecn, config, now, out),
            State::Listen if segment.flags.has(Flags::SYN) => self.on_syn(segment, config, now, out),
            State::SynSent if segment.flags.has(Flags::SYN.with(Flags::ACK)) => {
                self.on_synack(segment, config, now, out);
            }
            State::SynReceived if segment.flags.has(Flags::SYN) => self.on_syn_again(segment, config, now, out),
            State::SynReceived => self.on_handshake_ack(segment, config, now, out),
            State::Listen | State::SynSent | State::Aborted => {}
        }
    }

    /// Takes a segment of an open connection: first its acknowledgement, then its data. Then it sends what it may.
    fn process<const SHORT: bool>(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        let Self { sender, receiver, .. } = self;
        if receiver.echo.has_option() && segment.byte_counts().is_some() {
            receiver.note_peers_option(false);
        }
        let mut may_send = false;
        if sender.heard.is_accurate() {
            sender.heard.begin(receiver.is_newer(segment, config));
        }
        receiver.note_stamp(segment, config);
        if receiver.has_stopped() {
            receiver.answer_probe(segment, sender, config, now, out);
        }
        if segment.flags.has(Flags::ACK) {
            may_send = sender.on_ack(segment, config, now, &mut Outlet { receiver, emit: out });
        }
        if segment.payload > 0 || segment.flags.has(Flags::FIN) {
            receiver.on_data(segment, sender, config, now, out);
        } else if receiver.echo.is_accurate() {
            receiver.on_control_marks(segment, sender, config, now, out);
        }
        receiver.note_echo(segment);
        sender.heard.end();
        let out = &mut Outlet { receiver, emit: out };
        match may_send {
            true if SHORT => sender.push(config, now, out),
            true => sender.push_generally(config, now, out),
            false => {}
        }
    }

    /// The instant at which [`Endpoint::on_wake`] has something to do; [`Time::NEVER`] if none. Every other call may
    /// change it.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.sender.next_wake().min(self.receiver.delayed_ack_at)
    }

    /// Does what is due at `now`, which is mostly to send what had to wait for its departure.
    #[inline]
    pub fn on_wake(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if cfg!(feature = "both-ways") {
            let generally = |end: &mut Self, out: &mut _| end.on_wake_generally(config, now, out);
            let shortly = |end: &mut Self, out: &mut _| end.on_wake_shortly(config, now, out);
            self.both_ways(&"a wake-up", out, generally, shortly);
        } else {
            self.on_wake_shortly(config, now, out);
        }
    }

    #[inline(always)]
    fn on_wake_shortly(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let Self { sender, receiver, .. } = self;
        let is_done = now < receiver.delayed_ack_at
            && sender.departs_plainly(config, now, &mut Outlet { receiver, emit: &mut *out });
        if !is_done {
            self.wake::<true>(config, now, out);
        }
    }

    /// Does what is due at `now`, without the short way of the plain path: tests compare the two.
    pub fn on_wake_generally(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.wake::<false>(config, now, out);
    }

    /// Does what is due at `now`. What may be sent afterwards is sent the short way where `SHORT` allows it.
    #[inline(never)]
    fn wake<const SHORT: bool>(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.sender.reckon_probe(config);
        if now >= self.receiver.delayed_ack_at {
            self.receiver.on_delay_timer(&self.sender, config, now, out);
        }
        if self.sender.on_seldom(config, now, &mut Outlet { receiver: &mut self.receiver, emit: out }) {
            self.give_up();
        }
        if now >= self.sender.rto_at {
            match self.state {
                State::Established => {
                    if self.sender.on_timeout(config, now, &mut Outlet { receiver: &mut self.receiver, emit: out }) {
                        self.give_up();
                    }
                }
                State::SynSent => self.retry_syn(&config.syn_timer, config, now, out),
                State::SynReceived => self.retry_syn(&config.synack_timer, config, now, out),
                State::Listen | State::Aborted => self.sender.rto_at = Time::NEVER,
            }
        }
        self.sender.on_departure::<SHORT>(config, now, &mut Outlet { receiver: &mut self.receiver, emit: out });
    }

    /// Gives the connection up. Nothing is due afterwards.
    #[cold]
    fn give_up(&mut self) {
        self.state = State::Aborted;
        self.receiver.delayed_ack_at = Time::NEVER;
        self.sender.give_up();
    }
}
