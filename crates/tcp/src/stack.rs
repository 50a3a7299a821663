//! A [`Config`] says, as data, how one TCP implementation differs from others. Each endpoint is configured with one.
//!
//! `profiles.rs` has a profile for each implementation. A scenario starts from a profile and may override any of its
//! values.

mod profiles;

pub use profiles::{Profile, Sourced, profile, profiles};

pub use crate::cc::{Control, CubicDialect, Hystart, ledbat::Settings as LedbatSettings};
use base::{Ecn, Rate, Span};
use std::fmt;
use std::ops::Deref;

/// How losses are found and repaired, whatever the window does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Fast retransmit and fast recovery; the first partial acknowledgement ends it (RFC 2581).
    Reno,
    /// Partial acknowledgements retransmit the next hole (RFC 6582). Where the window comes down gradually, as in Linux
    /// without SACK, each duplicate acknowledgement stands for a segment that arrived.
    NewReno,
    /// Selective acknowledgements and a pipe (RFC 6675).
    Sack,
    /// Selective acknowledgements; losses are found by time, the last segments of a flight are probed for (RFC 8985).
    Rack,
    /// ns-2's `Agent/TCP/Newreno`.
    Ns2NewReno,
    /// ns-2's `Agent/TCP/Sack1`.
    Ns2Sack1,
}

impl Repair {
    /// Every one with its word in scenarios.
    pub const WORDS: [(&str, Self); 6] = [
        ("reno", Self::Reno),
        ("newreno", Self::NewReno),
        ("sack", Self::Sack),
        ("rack", Self::Rack),
        ("ns2-newreno", Self::Ns2NewReno),
        ("ns2-sack1", Self::Ns2Sack1),
    ];

    /// Whether receivers report what arrived.
    #[inline]
    pub const fn has_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack | Self::Ns2Sack1)
    }

    /// Whether losses are repaired as an agent of ns-2 does.
    #[inline]
    pub const fn is_of_ns2(self) -> bool {
        matches!(self, Self::Ns2NewReno | Self::Ns2Sack1)
    }

    /// The repair of the same stack with receivers that report what arrived.
    #[must_use]
    pub const fn with_sack(self) -> Self {
        match self {
            Self::Reno | Self::NewReno => Self::Sack,
            Self::Ns2NewReno => Self::Ns2Sack1,
            Self::Sack | Self::Rack | Self::Ns2Sack1 => self,
        }
    }

    /// The repair of the same stack with receivers that do not.
    #[must_use]
    pub const fn without_sack(self) -> Self {
        match self {
            Self::Ns2NewReno | Self::Ns2Sack1 => Self::Ns2NewReno,
            Self::Reno | Self::NewReno | Self::Sack | Self::Rack => Self::NewReno,
        }
    }
}

/// How the window comes down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// It comes down at once. Acknowledgements that do not echo a mark let it grow again.
    AtOnce,
    /// It comes down over a round trip, in proportion to what is delivered (RFC 6937), and does not grow until then, as
    /// in Linux.
    Proportional,
}

/// What the end hosts do about ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnMode {
    /// No ECN.
    Off,
    /// RFC 3168: data packets are ECN-capable; SYN, SYN/ACK, pure ACKs and retransmissions are not.
    On,
    /// ECN+ (Kuzmanovic 2005): the SYN/ACK is ECN-capable too. If it is marked, the server starts with one segment at
    /// once.
    Plus,
    /// ECN+/TryOnce (RFC 5562): a marked SYN/ACK is sent again at once without being ECN-capable.
    PlusTryOnce,
    /// Accurate feedback (RFC 9768) where both ends have it, and what an older peer has otherwise. What is ECN-capable
    /// is as with `On`.
    Accurate,
}

/// When segments carry the AccECN option (RFC 9768 §3.2.3), with [`EcnMode::Accurate`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnOption {
    /// Never.
    Off,
    /// Acknowledgements do where there is something new to tell, and three times a round trip.
    Rfc,
    /// As in Linux with `tcp_ecn_option = 1`: whatever is sent, where there is something new to tell and three times a
    /// round trip.
    LinuxMinimum,
    /// As in Linux with `tcp_ecn_option = 2`, its default: whatever is sent, where there is room. Data leaves room.
    Linux,
    /// As in Linux with `tcp_ecn_option = 3`: so, even where options seem to be what is lost.
    LinuxPersist,
}

impl EcnOption {
    /// Every one with its word in scenarios.
    pub const WORDS: [(&str, Self); 5] = [
        ("off", Self::Off),
        ("rfc", Self::Rfc),
        ("linux-minimum", Self::LinuxMinimum),
        ("linux", Self::Linux),
        ("linux-persist", Self::LinuxPersist),
    ];

    /// Whether hosts do as Linux does, also where RFC 9768 would have them do otherwise.
    #[inline]
    pub const fn is_linux(self) -> bool {
        matches!(self, Self::LinuxMinimum | Self::Linux | Self::LinuxPersist)
    }
}

/// When a round-trip time is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RttSampling {
    /// One segment at a time is timed, as BSD without timestamps and ns-2 do.
    OnePerWindow,
    /// Every acknowledgement of a segment that was sent once gives a sample.
    EveryAck,
}

/// How the retransmission timeout follows from the round-trip estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoFloor {
    /// max(SRTT + max(G, 4 RTTVAR), minimum): RFC 6298 §2.
    Whole,
    /// SRTT + max(4 RTTVAR, minimum): Linux applies the minimum to the variance term.
    Variance,
}

/// How often a connection request is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynTimer {
    /// First waiting time.
    pub base: Span,
    /// Factor on `base` before retry 1, 2, ...; the connection is given up after the last.
    pub factors: Backoff,
}

/// How much longer each repetition waits than the first wait: a short list of factors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    factors: [u32; Self::MOST],
    length: u8,
}

impl Backoff {
    /// The longest list.
    pub const MOST: usize = 16;

    /// A list of these factors, at most [`Self::MOST`].
    pub const fn new(list: &[u32]) -> Self {
        assert!(list.len() <= Self::MOST, "a list of factors is short");
        let mut factors = [0; Self::MOST];
        factors.split_at_mut(list.len()).0.copy_from_slice(list);
        Self { factors, length: list.len() as u8 }
    }
}

impl Deref for Backoff {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.factors[..usize::from(self.length)]
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// When acknowledgements are delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedAck {
    /// Segments that force an acknowledgement; 1 acknowledges each at once.
    pub every: u32,
    /// Longest delay.
    pub timeout: Span,
    /// Segments acknowledged at once at the start of a connection (Linux's quick acknowledgements).
    pub quick: u32,
    /// Whether a window update follows right behind the acknowledgement that a second segment forced, when the
    /// application has read what both brought (BSD's `tcp_output`).
    pub window_updates: bool,
    /// Whether every segment counts towards `every`, as in BSD. Otherwise bytes count, and more of them than
    /// `every` - 1 full segments hold force an acknowledgement (RFC 5681 §4.2, as Linux reads it).
    pub counts_small: bool,
    /// Whether marks are acknowledged at once: a marked segment, the one after it, and one that carries CWR (Linux,
    /// `__tcp_ecn_check_ce` and `tcp_ecn_accept_cwr`).
    pub hurries_for_ecn: bool,
    /// Whether the delay and the number of quick acknowledgements adapt to how the sender sends, as in Linux. Then
    /// `timeout` is the shortest delay (TCP_ATO_MIN) and `quick` the most that is acknowledged at once in a row.
    pub adapts: bool,
}

/// Everything an endpoint is configured with.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Name of the profile it started from.
    pub stack: &'static str,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Bytes of IP and TCP header of a data segment or pure ACK, options of every segment included.
    pub header: u32,
    /// Bytes of IP and TCP header of a SYN or SYN/ACK.
    pub syn_header: u32,
    /// Largest receive window, and send buffer, bytes of payload.
    pub window: u64,
    /// Receive buffer at first (the second value of `tcp_rmem`), of which half is offered. It grows with what arrives
    /// until `window` is offered. With zero, `window` is offered from the start. It counts only where delayed
    /// acknowledgements adapt.
    pub receive_buffer: u64,
    /// Initial congestion window, segments.
    pub initial_window: u32,
    /// Whether a lost SYN or SYN/ACK reduces the initial window to one segment (RFC 5681 §3.1).
    pub syn_loss_resets_window: bool,
    /// How many times a SYN or SYN/ACK may be sent again without that: one that is repeated once may only be late.
    pub syn_losses_forgiven: u32,
    /// Whether the connection is opened by a handshake; `false`: both ends start established (ns-2's one-way TCP).
    pub handshake: bool,
    /// Whether only the opener sends, as ns-2's one-way agents do: the answer to its SYN opens both ends, and the other
    /// end sends acknowledgements and no FIN.
    pub one_way: bool,
    /// How losses are repaired.
    pub repair: Repair,
    /// Congestion control.
    pub control: Control,
    /// Whose CUBIC it is, where that is the congestion control.
    pub cubic: CubicDialect,
    /// What LEDBAT leaves to implementations, where that is the congestion control.
    pub ledbat: LedbatSettings,
    /// What ends slow start before anything is lost.
    pub hystart: Hystart,
    /// Whether what is sent is spread over the round trip. A controller that models the path does so in any case.
    pub pacing: bool,
    /// The most segments that leave at once where data is paced: `gso_max_segs` in Linux.
    pub pacing_burst: u32,
    /// The highest rate at which data is sent, counted in IP packets: such a sender paces, whatever `pacing` says. It
    /// is Linux's `SO_MAX_PACING_RATE`.
    pub max_pacing_rate: Option<Rate>,
    /// ECN.
    pub ecn: EcnMode,
    /// When segments carry counts of bytes, with [`EcnMode::Accurate`]: the AccECN option.
    pub ecn_option: EcnOption,
    /// Whether a SYN that is sent again does not ask for ECN (RFC 3168 §6.1.1.1).
    pub ecn_fallback: bool,
    /// Whether a mark takes less of the window than a loss (RFC 8511).
    pub abe: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Whether growth counts acknowledged bytes (appropriate byte counting, RFC 3465) instead of acknowledgements.
    pub byte_counting: bool,
    /// Whether the window grows only while it is what limits the sender (RFC 7661 in spirit).
    pub cwnd_validation: bool,
    /// Smallest window after a reduction by ECN, segments; it raises none. With 1, where the window comes down at once,
    /// an echo that meets a window of one segment also stops the sender until its timer would have expired (RFC 3168
    /// §6.1.2). With 0 there is none where losses are repaired as ns-2 does: less than a segment stops the sender until
    /// its timer expires. Elsewhere 0 is 1.
    pub ecn_floor: u32,
    /// The field of ECN-capable packets: ECT(0), or ECT(1) for L4S (RFC 9331).
    pub ect: Ecn,
    /// Whether retransmissions are ECN-capable, against RFC 3168 §6.1.5.
    pub ect_on_retransmit: bool,
    /// Whether SYN, SYN/ACK, pure ACKs and FINs are ECN-capable, as in data centres (RFC 8257 §3.6).
    pub ect_on_control: bool,
    /// Whether, where feedback is accurate, whatever is sent in an open connection is ECN-capable, as in Linux: pure
    /// ACKs, FINs and retransmissions too.
    pub ect_on_all: bool,
    /// How the window comes down, for losses and for marks; at once with [`Repair::Reno`].
    pub reduction: Reduction,
    /// Whether segments carry timestamps (RFC 7323). They tell a retransmission from the original, and give its round
    /// trip too. `header` includes their bytes.
    pub timestamps: bool,
    /// Whether data that came twice is reported (RFC 2883). It counts only where receivers report what arrived.
    pub dsack: bool,
    /// Whether the reduction of a timeout is taken back if a segment arrives that was deemed lost and was sent once
    /// (F-RTO, RFC 5682). It counts only with [`Repair::Rack`], or where the window comes down gradually with
    /// [`Repair::NewReno`].
    pub frto: bool,
    /// Whether a reduction is taken back if timestamps or reports of data that came twice prove it needless (RFC 3522
    /// and 3708). It counts only where `frto` does.
    pub undo: bool,
    /// Whether a server measures the round trip of its SYN/ACK. The source of FreeBSD 4 has no such sample where a
    /// connection comes out of its syncache, so that the first timeout is `rto_initial` there.
    pub synack_rtt: bool,
    /// Whether a loss leaves half of the window, in whole segments, and not of what is outstanding, as in BSD
    /// (RFC 2581 has the latter). It counts where the window comes down at once.
    pub threshold_of_window: bool,
    /// Whether a FIN without data takes a segment's room in the congestion window.
    pub fin_takes_room: bool,
    /// Whether the window counts segments, each as a full one however short it is, as in Linux: it grows by one when so
    /// many were acknowledged.
    pub whole_segments: bool,
    /// Whether an idle period longer than the RTO brings the window back to the initial one (RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Whether an idle period halves the window for each RTO, and keeps three quarters of it as the threshold
    /// (RFC 2861, as in Linux).
    pub idle_halves: bool,
    /// Round-trip measurement.
    pub rtt_sampling: RttSampling,
    /// Clock tick of the round-trip estimator and of timeouts.
    pub granularity: Span,
    /// Whether timers go off at the ends of slots that grow with the wait, as in Linux's timer wheel: a wait of 200 ms
    /// takes up to 8 ms longer, one of 1 s up to 64 ms.
    pub timer_wheel: bool,
    /// RTO before any measurement.
    pub rto_initial: Span,
    /// Smallest RTO.
    pub rto_min: Span,
    /// Largest RTO.
    pub rto_max: Span,
    /// Timeouts in a row after which the round-trip time is forgotten: the next sample is taken for the first.
    pub rtt_forgotten_after: u32,
    /// Where the minimum applies.
    pub rto_floor: RtoFloor,
    /// SYN retries.
    pub syn_timer: SynTimer,
    /// SYN/ACK retries.
    pub synack_timer: SynTimer,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
}

impl Config {
    /// What ends slow start: nothing of the frame's where the controller starts in a way of its own.
    pub fn hystart(&self) -> Hystart {
        if self.control.starts_itself() { Hystart::Off } else { self.hystart }
    }

    /// Whether a sender counts marks as Linux does where three bits may have gone round. Without the option that is
    /// where accurate feedback is Linux's otherwise.
    pub fn counts_as_linux(&self) -> bool {
        self.ecn_option.is_linux() || self.ecn_option == EcnOption::Off && self.ect_on_all
    }

    /// Whether what is sent is spread over the round trip.
    pub fn is_paced(&self) -> bool {
        self.pacing || self.control.models_path() || self.max_pacing_rate.is_some()
    }
}
