//! This file has the feedback of marks: both ends agree on its kind in the handshake, the receiver tells of marks, and
//! the sender hears of them.
//!
//! | | `Classic` | `EachMark` | `Accurate` |
//! |---|---|---|---|
//! | rule | RFC 3168 §6.1 | RFC 8257 §3.2 | RFC 9768 |
//! | an acknowledgement | echoes a mark, until the sender has reduced | echoes, if what it is for was marked | counts |
//! | CWR | ends the echo | is only acknowledged at once | is a bit of the count |
//! | a mark on the SYN/ACK | is echoed (RFC 5562) | is not: marks are of data alone | is told, and counted |
//!
//! The configuration of the hosts and, without accurate feedback, their controller decide which of these they use. Each
//! half keeps its own part: the receiver an [`Echo`], the sender what it has [`Heard`].

use super::accurate::{self, INITIAL, newly_marked};
use super::option::{Counted, Learnt};
use super::option_linux::Linux;
use super::receiver::Receiver;
use super::sender::Sender;
use super::wraps_linux::{Arrival, Usual};
use super::{Emit, Endpoint};
use crate::segment::{Flags, Segment};
use crate::stack::{Config, EcnMode, EcnOption};
use base::{Ecn, Span, Time};

/// What the two ends agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Feedback {
    /// The ends do no ECN.
    Off,
    /// A mark is echoed until the sender says that it has reduced.
    Classic,
    /// Each acknowledgement tells of what it acknowledges.
    EachMark,
    /// Each acknowledgement tells how many packets were marked.
    Accurate,
}

base::packed!(Feedback: Off | Classic | EachMark | Accurate);

impl Feedback {
    /// The feedback of hosts that all are as configured here.
    pub fn both(config: &Config) -> Self {
        match config.ecn {
            EcnMode::Off => Self::Off,
            EcnMode::Accurate => Self::Accurate,
            EcnMode::On | EcnMode::Plus | EcnMode::PlusTryOnce => Self::classic(true, config),
        }
    }

    /// What a server takes from the flags of a SYN (RFC 9768 §3.1.2 and §3.1.3).
    pub fn of_syn(flags: Flags, config: &Config) -> Self {
        match (config.ecn, flags.ace()) {
            (EcnMode::Accurate, accurate::NONE | accurate::ASKS_CLASSIC) | (EcnMode::Off, _) => {
                Self::classic(flags.has(Flags::ECE), config)
            }
            (EcnMode::Accurate, _) => Self::Accurate,
            _ => Self::classic(flags.has(Flags::ECE.with(Flags::CWR)), config),
        }
    }

    /// What a client takes from the flags of a SYN/ACK.
    pub fn of_synack(flags: Flags, config: &Config) -> Self {
        match (config.ecn, flags.ace()) {
            (EcnMode::Accurate, accurate::NONE | accurate::BROKEN) => Self::Off,
            (EcnMode::Accurate, accurate::CLASSIC) => Self::classic(true, config),
            (EcnMode::Accurate, _) => Self::Accurate,
            _ => Self::classic(flags.has(Flags::ECE), config),
        }
    }

    /// The kind of feedback that these hosts use, if the peer `agrees` to ECN as it was before RFC 9768.
    fn classic(agrees: bool, config: &Config) -> Self {
        if !agrees || config.ecn == EcnMode::Off {
            Self::Off
        } else if config.control.echoes_each_mark() {
            Self::EachMark
        } else {
            Self::Classic
        }
    }

    /// The field of ECN-capable packets.
    fn field(self, config: &Config) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            // RFC 9331 §4.1: ECT(1) is for a scalable answer, which needs these counts.
            Self::Classic | Self::EachMark if config.control.needs_counts() => Ecn::Ect0,
            Self::Classic | Self::EachMark | Self::Accurate => config.ect,
        }
    }
}

/// A receiver's part: what its acknowledgements say of marks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Echo {
    kind: Feedback,
    /// The flags that acknowledgements carry now, ACK among them.
    pub told: Flags,
    /// The field of ECN-capable packets.
    ect: Ecn,
    /// Data has come in an ECN-capable packet.
    has_seen_ect: bool,
    /// The field of the last packet that came (RFC 9768).
    last: Ecn,
    /// A SYN/ACK was marked, and counted (RFC 9768 §3.2.2.2).
    has_counted_synack: bool,
    /// Marked packets since the last acknowledgement, and in all: `r.cep` (RFC 9768).
    pub pending: u8,
    cep: u32,
    /// The counters of bytes, where options tell them.
    pub bytes: Option<Box<Counted>>,
}

base::packed!(Echo { kind, told, ect, has_seen_ect, last, has_counted_synack, pending, cep, bytes });

impl Echo {
    /// The ends do no ECN.
    pub const OFF: Self = Self {
        kind: Feedback::Off,
        told: Flags::ACK,
        ect: Ecn::NotEct,
        has_seen_ect: false,
        last: Ecn::NotEct,
        has_counted_synack: false,
        pending: 0,
        cep: INITIAL,
        bytes: None,
    };

    /// Whether acknowledgements may carry an AccECN option.
    #[inline]
    pub const fn has_option(&self) -> bool {
        self.bytes.is_some()
    }

    /// Whether acknowledgements count marks.
    #[inline]
    pub fn is_accurate(&self) -> bool {
        self.kind == Feedback::Accurate
    }

    /// Whether acknowledgements echo a mark now.
    #[inline]
    pub fn echoes(&self) -> bool {
        !self.is_accurate() && self.told.has(Flags::ECE)
    }

    /// How many marked packets it has counted.
    pub fn counted(&self) -> Option<u32> {
        self.is_accurate().then(|| self.cep - INITIAL)
    }

    /// Notes with which field a SYN came.
    pub fn note_syn(&mut self, field: Ecn) {
        self.last = field;
        if let Some(linux) = self.linux() {
            linux.note_syn(field);
        }
    }

    /// Linux's rules for options, where they hold.
    pub fn linux(&mut self) -> Option<&mut Linux> {
        self.bytes.as_mut().and_then(|bytes| bytes.linux())
    }

    /// Whether what is sent with data may carry an AccECN option.
    #[inline]
    pub fn has_option_with_data(&self) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bytes.rides_on_data())
    }

    /// The flags of a SYN/ACK (RFC 9768, Table 2).
    pub fn synack_flags(&self) -> Flags {
        match self.kind {
            Feedback::Off => Flags::NONE,
            Feedback::Classic | Feedback::EachMark => Flags::ECE,
            Feedback::Accurate => Flags::of_ace(accurate::code_of(self.last)),
        }
    }

    /// Notes with which field a SYN/ACK came. A classic echo tells of its mark, an accurate one counts it, but once.
    pub fn note_synack(&mut self, field: Ecn) {
        let is_marked = field == Ecn::Ce;
        match self.kind {
            Feedback::Classic if is_marked => self.told = Flags::ACK.with(Flags::ECE),
            Feedback::Accurate => {
                self.last = field;
                if is_marked && !self.has_counted_synack {
                    self.has_counted_synack = true;
                    self.cep += 1;
                }
                // Table 3: the acknowledgement of a SYN/ACK says this in the place of the counter.
                self.told = Flags::ACK.with(Flags::of_ace(accurate::code_of(field)));
            }
            _ => {}
        }
    }

    /// From now on, acknowledgements say the counter.
    pub fn tell_count(&mut self) {
        if self.is_accurate() {
            self.told = Flags::ACK.with(Flags::of_ace(self.cep));
        }
    }

    /// Sends no ECN-capable packets any more.
    pub fn forbid_ect(&mut self) {
        self.ect = Ecn::NotEct;
    }

    /// The ECN field of what a receiver sends, where its kind `may` be ECN-capable.
    #[inline]
    pub fn field(&self, may: bool) -> Ecn {
        if may { self.ect } else { Ecn::NotEct }
    }

    /// Whether a packet with this field is of the kind of the one before, and nothing is to be counted.
    #[inline]
    fn is_as_before(&self, field: Ecn) -> bool {
        field == self.last && field != Ecn::Ce && self.pending < MOST_PENDING && !self.has_option()
    }

    /// Counts a packet by its field. Returns the field of the packet before.
    fn count(&mut self, field: Ecn) -> Ecn {
        if field == Ecn::Ce {
            self.cep += 1;
            self.pending = self.pending.saturating_add(1);
            self.told = Flags::ACK.with(Flags::of_ace(self.cep));
        }
        if let Some(linux) = self.linux() {
            linux.note_field(field);
        }
        std::mem::replace(&mut self.last, field)
    }
}

/// How a sender hears of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hears {
    /// Of none: the ends do no ECN, or the peer's feedback is not to be believed.
    Nothing,
    /// By ECE.
    Echoes,
    /// By counts.
    Counts,
}

base::packed!(Hears: Nothing | Echoes | Counts);

/// A sender's part: whether it hears of marks, and whether it has to answer one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Heard {
    kind: Hears,
    /// The next new segment carries CWR.
    owes_cwr: bool,
    /// The field of ECN-capable packets.
    ect: Ecn,
    /// The flags of a segment that tells of nothing new.
    pub plain: Flags,
    /// The segment in hand was sent later than all before.
    is_newer: bool,
    /// Packets that the segment in hand tells were marked, and in all: `s.cep` (RFC 9768).
    newly: u32,
    cep: u32,
    /// How many packets acknowledgements usually cover.
    usual: Usual,
    /// The peer's counters of bytes, where options tell them.
    pub learnt: Option<Box<Learnt>>,
}

base::packed!(Heard { kind, owes_cwr, ect, plain, is_newer, newly, cep, usual, learnt });

impl Heard {
    /// The ends do no ECN.
    pub const OFF: Self = Self {
        kind: Hears::Nothing,
        owes_cwr: false,
        ect: Ecn::NotEct,
        plain: Flags::ACK,
        is_newer: false,
        newly: 0,
        cep: INITIAL,
        usual: Usual::OFF,
        learnt: None,
    };

    /// Whether it hears of marks by counts.
    #[inline]
    pub fn is_accurate(&self) -> bool {
        self.kind == Hears::Counts
    }

    /// Whether `segment`, the one in hand, tells that something was marked.
    #[inline]
    pub fn hears(&self, segment: &Segment) -> bool {
        match self.kind {
            Hears::Nothing => false,
            Hears::Echoes => segment.flags.has(Flags::ECE),
            Hears::Counts => self.newly > 0,
        }
    }

    /// Whether `flags` are those of an acknowledgement that counts marks, where no option counts bytes as well.
    #[inline]
    pub fn may_count(&self, flags: Flags) -> bool {
        self.is_accurate() && self.learnt.is_none() && flags.without(Flags::of_ace(accurate::MOST)) == Flags::ACK
    }

    /// How many bytes the segment in hand tells were marked, where that is told: by an option, or by full segments.
    #[inline]
    pub fn marked_bytes(&self, mss: u32) -> Option<u64> {
        let bytes = match &self.learnt {
            Some(learnt) if self.newly > 0 => learnt.newly,
            _ => u64::from(self.newly) * u64::from(mss),
        };
        self.is_accurate().then_some(bytes)
    }

    /// How many marked packets it has heard of.
    pub fn counted(&self) -> Option<u32> {
        self.is_accurate().then(|| self.cep - INITIAL)
    }

    /// Takes a segment in hand, which was sent later than all before if it `is_newer`.
    pub fn begin(&mut self, is_newer: bool) {
        self.is_newer = is_newer;
    }

    /// Reads the count in `segment`, which tells what more arrived. One that tells of nothing new and was not sent
    /// later is ignored: another may have superseded it (RFC 9768 §3.2.2.2).
    pub fn count(&mut self, segment: &Segment, arrival: Arrival) {
        if self.is_newer || arrival.packets > 0 {
            self.usual.note(arrival.packets);
            let counts = [0, arrival.packets].map(|packets| newly_marked(segment.flags.ace(), self.cep, packets));
            self.newly = match &mut self.learnt {
                None => self.usual.choose(counts),
                Some(learnt) => learnt.hear(segment.byte_counts().as_ref(), counts, arrival, self.usual),
            };
            self.note(self.newly);
        }
    }

    /// Takes a segment without an option that counts no mark, and acknowledges so many packets and bytes.
    #[inline(always)]
    pub fn count_none(&mut self, packets: u32, bytes: u64) {
        self.usual.note(packets);
        if packets > 0
            && let Some(learnt) = &mut self.learnt
        {
            learnt.foresee(None, bytes);
        }
    }

    /// Reads the option of a SYN/ACK, which acknowledges a packet and counts nothing yet.
    pub fn read_synack(&mut self, segment: &Segment) {
        self.usual.note(1);
        if let Some(learnt) = &mut self.learnt {
            learnt.hear(segment.byte_counts().as_ref(), [0; 2], Arrival::NONE, self.usual);
        }
    }

    /// Adds to the count.
    fn note(&mut self, packets: u32) {
        self.cep += packets;
        self.plain = Flags::ACK.with(Flags::of_ace(self.cep));
    }

    /// Lets go of the segment in hand.
    #[inline]
    pub fn end(&mut self) {
        (self.is_newer, self.newly) = (false, 0);
        if let Some(learnt) = &mut self.learnt {
            learnt.newly = 0;
        }
    }

    /// Notes that a SYN/ACK was marked. Returns the flags that count this.
    pub fn count_synack(&mut self, is_marked: bool) -> Flags {
        self.note(u32::from(is_marked));
        self.plain
    }

    /// Believes no feedback any more (RFC 9768, note 1 of Table 4).
    pub fn disbelieve(&mut self) {
        // No segment has these flags, so that none is plain.
        (self.kind, self.plain) = (Hears::Nothing, Flags::NONE);
        self.usual = Usual::OFF;
    }

    /// Sends no ECN-capable packets any more.
    pub fn forbid_ect(&mut self) {
        self.ect = Ecn::NotEct;
    }

    /// Notes that the window was reduced. The peer is told of every reduction, whatever its cause (RFC 3168 §6.1.2).
    pub fn owe_cwr(&mut self) {
        self.owes_cwr = self.kind == Hears::Echoes;
    }

    /// Notes that the reduction was taken back before the peer was told.
    pub fn forgive_cwr(&mut self) {
        self.owes_cwr = false;
    }

    /// Whether the new segment about to be sent carries CWR. The one after it does not.
    #[inline]
    pub fn pay_cwr(&mut self) -> bool {
        std::mem::take(&mut self.owes_cwr)
    }

    /// The ECN field of what a sender sends, where its kind `may` be ECN-capable.
    #[inline]
    pub fn field(&self, may: bool) -> Ecn {
        if may { self.ect } else { Ecn::NotEct }
    }
}

impl Endpoint {
    /// Lets both halves do what the handshake agreed on.
    pub(super) fn agree(&mut self, feedback: Feedback, config: &Config) {
        let ect = feedback.field(config);
        let kind = match feedback {
            Feedback::Off => Hears::Nothing,
            Feedback::Classic | Feedback::EachMark => Hears::Echoes,
            Feedback::Accurate => Hears::Counts,
        };
        self.receiver.echo = Echo { kind: feedback, ect, ..Echo::OFF };
        self.sender.heard = Heard { kind, ect, ..Heard::OFF };
        if feedback == Feedback::Accurate {
            self.sender.heard.usual = Usual::kept_if(config.counts_as_linux());
            self.receiver.echo.tell_count();
            self.sender.heard.count_synack(false);
            if config.ecn_option != EcnOption::Off {
                self.receiver.echo.bytes = Some(Box::new(Counted::new(config.ecn_option)));
                self.sender.heard.learnt = Some(Box::new(Learnt::new(config.ecn_option)));
            }
        }
    }

    /// Sends no ECN-capable packets any more.
    pub(super) fn forbid_ect(&mut self) {
        self.receiver.echo.forbid_ect();
        self.sender.heard.forbid_ect();
    }
}

impl Receiver {
    /// Reads the ECN field and CWR of arriving data, which change what acknowledgements tell.
    #[inline]
    pub(super) fn on_marks(
        &mut self,
        segment: &Segment,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        match self.echo.kind {
            Feedback::Off => {}
            Feedback::Classic => self.on_marks_classic(segment, config),
            Feedback::EachMark => self.on_marks_each(segment, sender, config, now, out),
            Feedback::Accurate if self.echo.is_as_before(segment.ecn) => {}
            Feedback::Accurate => self.on_marks_accurate(segment, config),
        }
    }

    /// Reads CWR of data that was here already: it ends the echo of marks (tcp_ecn_accept_cwr).
    pub(super) fn on_cwr(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::CWR) && self.echo.kind == Feedback::Classic {
            self.echo.told = Flags::ACK;
            self.make_due();
        }
    }

    #[inline(never)]
    fn on_marks_classic(&mut self, segment: &Segment, config: &Config) {
        let mut echoes = self.echo.echoes();
        let hurries = config.delayed_ack.hurries_for_ecn;
        if segment.flags.has(Flags::CWR) {
            echoes = false;
            self.make_due();
            self.quick_acks_left = self.quick_acks_left.max(u32::from(hurries));
        }
        // Data that is not ECN-capable, where other data was, is probably sent again.
        let is_amiss = match segment.ecn {
            Ecn::Ce => !std::mem::replace(&mut echoes, true),
            Ecn::NotEct => self.echo.has_seen_ect,
            Ecn::Ect0 | Ecn::Ect1 => false,
        };
        if hurries && is_amiss {
            // __tcp_ecn_check_ce
            self.quick_acks_left = self.quick_acks_left.max(2);
            self.hurry_afresh(2, config);
        }
        self.echo.has_seen_ect |= segment.ecn != Ecn::NotEct;
        self.echo.told = Flags::ACK.with_if(Flags::ECE, echoes);
    }

    /// Sends the delayed acknowledgement of earlier data when marks begin or end, since that data was of the other
    /// kind. The change itself is acknowledged at once too, as in Linux.
    #[inline(never)]
    fn on_marks_each(&mut self, segment: &Segment, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        let is_marked = segment.ecn == Ecn::Ce;
        if is_marked != self.echo.echoes() {
            if self.delayed_ack_at.is_set() {
                self.acknowledge(sender, config, now, out);
            }
            self.echo.told = Flags::ACK.with_if(Flags::ECE, is_marked);
            self.make_due();
            self.quick_acks_left = self.quick_acks_left.max(1);
        }
        if segment.flags.has(Flags::CWR) {
            // tcp_ecn_accept_cwr: the sender's window may be very small.
            self.make_due();
        }
    }

    /// Counts a mark on data. It is acknowledged at once if the packet before had none, and every second one is
    /// (RFC 9768 §3.2.2.5.1). Linux acknowledges every change of the field at once (tcp_ecn_received_counters).
    #[inline(never)]
    fn on_marks_accurate(&mut self, segment: &Segment, config: &Config) {
        let before = self.echo.count(segment.ecn);
        let is_told = segment.ecn == Ecn::Ce || config.delayed_ack.hurries_for_ecn;
        let counted = self.echo.bytes.as_mut();
        let changes = counted.is_some_and(|counted| counted.count(segment.ecn, segment.payload.into()));
        if segment.ecn != before && is_told || changes || self.echo.pending >= MOST_PENDING {
            self.acknowledge_next();
        }
    }

    /// Gives a segment an AccECN option, where one is due. It may take the place of a report.
    #[inline]
    pub(super) fn add_option(&mut self, ack: &mut Segment, rtt: Option<Span>, now: Time) {
        let tells_twice = ack.sacks.duplicate(ack.ack).is_some();
        if let Some(counted) = &mut self.echo.bytes
            && let Some((option, reports)) = counted.option(ack.sacks.len(), tells_twice, now, rtt)
        {
            ack.keep_reports(reports);
            ack.carry(&option);
        }
    }

    /// Notes that the peer sent an AccECN option, with a SYN/ACK or otherwise.
    #[inline(never)]
    pub(super) fn note_peers_option(&mut self, is_synack: bool) {
        if let Some(linux) = self.echo.linux() {
            linux.note_peers(is_synack);
        }
    }

    /// Whether the field of `segment`, which brings no data, is to be counted.
    #[inline]
    pub(super) fn heeds(&self, segment: &Segment) -> bool {
        self.echo.is_accurate() && (segment.ecn == Ecn::Ce || segment.ecn != self.echo.last)
    }

    /// Counts a mark on a segment without data. Every third one is acknowledged, although there is nothing to
    /// acknowledge, and every second one if there is (RFC 9768 §3.2.2.5.1).
    #[inline(never)]
    pub(super) fn on_control_marks(
        &mut self,
        segment: &Segment,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        let before = self.echo.count(segment.ecn);
        if segment.ecn != before && config.delayed_ack.hurries_for_ecn {
            // tcp_ecn_received_counters: what comes next is acknowledged at once.
            self.make_due();
        }
        let most = if self.delayed_ack_at.is_set() { MOST_PENDING } else { MOST_PENDING_IN_VAIN };
        if self.echo.pending >= most {
            self.acknowledge(sender, config, now, out);
        }
    }
}

/// So many marked packets are acknowledged at once, the first where data waits to be acknowledged.
const MOST_PENDING: u8 = 2;
const MOST_PENDING_IN_VAIN: u8 = 3;
