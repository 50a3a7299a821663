//! This file has the feedback of marks: both ends agree on its kind in the handshake, the receiver echoes marks, and
//! the sender hears the echoes.
//!
//! | | `Classic` | `EachMark` |
//! |---|---|---|
//! | rule | RFC 3168 §6.1 | RFC 8257 §3.2 |
//! | an acknowledgement echoes | from a mark on, until the sender has reduced | if what it acknowledges was marked |
//! | CWR | ends the echo | is only acknowledged at once |
//! | a mark on the SYN/ACK | is echoed (RFC 5562) | is not: marks are of data alone |
//!
//! The controller of the hosts decides which of the two they use. Each half keeps its own part: the receiver an
//! [`Echo`], the sender what it has [`Heard`].

use super::receiver::Receiver;
use super::sender::Sender;
use super::{Emit, Endpoint};
use crate::segment::{Flags, Segment};
use crate::stack::{Config, EcnMode};
use base::{Ecn, Time};

/// What the two ends agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Feedback {
    /// The ends do no ECN.
    Off,
    /// A mark is echoed until the sender says that it has reduced.
    Classic,
    /// Each acknowledgement tells of what it acknowledges.
    EachMark,
}

impl Feedback {
    /// The kind of feedback that these hosts use, if the peer `agrees` to ECN.
    pub fn agreed(agrees: bool, config: &Config) -> Self {
        if !agrees || config.ecn == EcnMode::Off {
            Self::Off
        } else if config.control.echoes_each_mark() {
            Self::EachMark
        } else {
            Self::Classic
        }
    }
}

/// A receiver's part: what its acknowledgements say of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Echo {
    /// The ends do no ECN.
    Off,
    /// The value says whether acknowledgements echo a mark now.
    Classic(bool),
    /// The value says whether the last data that came was marked.
    EachMark(bool),
}

impl Echo {
    /// Whether both ends do ECN.
    #[inline]
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Whether acknowledgements carry ECE now.
    #[inline]
    pub fn echoes(self) -> bool {
        matches!(self, Self::Classic(true) | Self::EachMark(true))
    }

    /// Notes that a SYN/ACK was marked.
    pub fn note_marked_synack(&mut self) {
        if let Self::Classic(echoes) = self {
            *echoes = true;
        }
    }

    /// The ECN field of what a receiver sends, where its kind `may` be ECN-capable.
    #[inline]
    pub fn field(self, may: bool, config: &Config) -> Ecn {
        if may && self.is_on() { config.ect } else { Ecn::NotEct }
    }
}

/// A sender's part: whether it hears of marks, and whether it has to answer one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// The ends do no ECN.
    Off,
    /// The ends do ECN.
    On {
        /// The next new segment carries CWR.
        owes_cwr: bool,
    },
}

impl Heard {
    /// Whether `segment` tells that data was marked.
    #[inline]
    pub fn hears(self, segment: &Segment) -> bool {
        segment.flags.has(Flags::ECE) && self != Self::Off
    }

    /// Notes that the window was reduced. The peer is told of every reduction, whatever its cause (RFC 3168 §6.1.2).
    pub fn owe_cwr(&mut self) {
        if let Self::On { owes_cwr } = self {
            *owes_cwr = true;
        }
    }

    /// Notes that the reduction was taken back before the peer was told.
    pub fn forgive_cwr(&mut self) {
        self.pay_cwr();
    }

    /// Whether the new segment about to be sent carries CWR. The one after it does not.
    #[inline]
    pub fn pay_cwr(&mut self) -> bool {
        match self {
            Self::Off => false,
            Self::On { owes_cwr } => std::mem::take(owes_cwr),
        }
    }

    /// The ECN field of what a sender sends, where its kind `may` be ECN-capable.
    #[inline]
    pub fn field(self, may: bool, config: &Config) -> Ecn {
        if may && self != Self::Off { config.ect } else { Ecn::NotEct }
    }
}

impl Endpoint {
    /// Lets both halves do what the handshake agreed on.
    pub(super) fn agree(&mut self, feedback: Feedback) {
        (self.receiver.echo, self.sender.heard) = match feedback {
            Feedback::Off => (Echo::Off, Heard::Off),
            Feedback::Classic => (Echo::Classic(false), Heard::On { owes_cwr: false }),
            Feedback::EachMark => (Echo::EachMark(false), Heard::On { owes_cwr: false }),
        };
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
        match self.echo {
            Echo::Off => {}
            Echo::Classic(echoes) => self.on_marks_classic(echoes, segment, config),
            Echo::EachMark(before) => self.on_marks_each(before, segment, sender, config, now, out),
        }
    }

    #[inline(never)]
    fn on_marks_classic(&mut self, mut echoes: bool, segment: &Segment, config: &Config) {
        let hurries = config.delayed_ack.hurries_for_ecn;
        if segment.flags.has(Flags::CWR) {
            echoes = false;
            self.make_due();
            self.quick_acks_left = self.quick_acks_left.max(u32::from(hurries));
        }
        if segment.ecn == Ecn::Ce {
            if hurries && !echoes {
                self.quick_acks_left = self.quick_acks_left.max(2);
                self.hurry_afresh(2, config);
            }
            echoes = true;
        }
        self.echo = Echo::Classic(echoes);
    }

    /// Sends the delayed acknowledgement of earlier data when marks begin or end, since that data was of the other
    /// kind.
    /// The change itself is acknowledged at once too, as in Linux.
    #[inline(never)]
    fn on_marks_each(
        &mut self,
        before: bool,
        segment: &Segment,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        let is_marked = segment.ecn == Ecn::Ce;
        if is_marked != before {
            if self.delayed_ack_at.is_set() {
                self.acknowledge(sender, config, now, out);
            }
            self.echo = Echo::EachMark(is_marked);
            self.make_due();
            self.quick_acks_left = self.quick_acks_left.max(1);
        }
        if segment.flags.has(Flags::CWR) {
            // tcp_ecn_accept_cwr: the sender's window may be very small.
            self.make_due();
        }
    }
}
