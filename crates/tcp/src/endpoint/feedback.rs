//! What the two ends tell each other of marks: agreed on in the handshake, echoed by the receiver, heard by the sender.
//!
//! | | `Classic` | `EachMark` |
//! |---|---|---|
//! | rule | RFC 3168 §6.1 | RFC 8257 §3.2 |
//! | an acknowledgement echoes | from a mark on, until the sender has reduced | if what it acknowledges was marked |
//! | CWR | ends the echo | is only acknowledged at once |
//! | a mark on the SYN/ACK | is echoed (RFC 5562) | is not: marks are of data alone |
//!
//! Which of the two it is follows from the controller that the hosts have.

use super::{Emit, Endpoint};
use crate::segment::{Flags, Segment};
use crate::stack::{Config, EcnMode};
use base::{Ecn, Time};

/// What one end knows of marks and has to tell of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Feedback {
    /// The ends do no ECN.
    Off,
    /// A mark is echoed until the sender says that it has reduced.
    Classic(Marks),
    /// Each acknowledgement tells of what it acknowledges.
    EachMark(Marks),
}

/// What an end has to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks {
    /// As a receiver: acknowledgements carry ECE.
    echoes: bool,
    /// As a sender: the next new segment carries CWR.
    owes_cwr: bool,
}

impl Feedback {
    /// What these hosts do where the peer `agrees` to it.
    pub fn agreed(agrees: bool, config: &Config) -> Self {
        if !agrees || config.ecn == EcnMode::Off {
            Self::Off
        } else if config.control.echoes_each_mark() {
            Self::EachMark(Marks::default())
        } else {
            Self::Classic(Marks::default())
        }
    }

    /// Whether both ends do ECN.
    #[inline]
    pub fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a segment tells its receiver, who sends data too, that data was marked.
    #[inline]
    pub fn hears(&self, segment: &Segment) -> bool {
        segment.flags.has(Flags::ECE) && self.is_on()
    }

    /// Whether acknowledgements echo a mark now.
    #[inline]
    pub fn echoes(&self) -> bool {
        matches!(self, Self::Classic(Marks { echoes: true, .. }) | Self::EachMark(Marks { echoes: true, .. }))
    }

    /// A SYN/ACK was marked.
    pub fn note_marked_synack(&mut self) {
        if let Self::Classic(marks) = self {
            marks.echoes = true;
        }
    }

    /// The window was reduced: the peer is told of every reduction, whatever its cause (RFC 3168 §6.1.2).
    pub fn owe_cwr(&mut self) {
        if let Self::Classic(marks) | Self::EachMark(marks) = self {
            marks.owes_cwr = true;
        }
    }

    /// The reduction was taken back before the peer was told.
    pub fn forgive_cwr(&mut self) {
        self.pay_cwr();
    }

    /// Whether the next new segment carries CWR; the one after it does not.
    #[inline]
    pub fn pay_cwr(&mut self) -> bool {
        match self {
            Self::Off => false,
            Self::Classic(marks) | Self::EachMark(marks) => std::mem::take(&mut marks.owes_cwr),
        }
    }

    /// The ECN field of what is sent, where its kind `may` be ECN-capable.
    #[inline]
    pub fn field(&self, may: bool, config: &Config) -> Ecn {
        if may && self.is_on() { config.ect } else { Ecn::NotEct }
    }
}

impl Endpoint {
    /// What the ECN field and CWR of arriving data change in what acknowledgements tell.
    #[inline]
    pub(super) fn on_marks(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        match self.feedback {
            Feedback::Off => {}
            Feedback::Classic(marks) => self.on_marks_classic(marks, segment, config),
            Feedback::EachMark(marks) => self.on_marks_each(marks, segment, config, now, out),
        }
    }

    fn on_marks_classic(&mut self, mut marks: Marks, segment: &Segment, config: &Config) {
        let hurries = config.delayed_ack.hurries_for_ecn;
        if segment.flags.has(Flags::CWR) {
            marks.echoes = false;
            self.make_due();
            self.quick_acks_left = self.quick_acks_left.max(u32::from(hurries));
        }
        if segment.ecn == Ecn::Ce {
            if hurries && !marks.echoes {
                self.quick_acks_left = self.quick_acks_left.max(2);
                self.hurry_afresh(2, config);
            }
            marks.echoes = true;
        }
        self.feedback = Feedback::Classic(marks);
    }

    /// What was acknowledged late so far is of the other kind when the marks begin or end, and is acknowledged by
    /// itself; the change is told at once too, as Linux does.
    fn on_marks_each(&mut self, marks: Marks, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        let echoes = segment.ecn == Ecn::Ce;
        if echoes != marks.echoes {
            if self.delayed_ack_at.is_set() {
                self.send_ack(config, now, out);
            }
            self.feedback = Feedback::EachMark(Marks { echoes, ..marks });
            self.make_due();
            self.quick_acks_left = self.quick_acks_left.max(1);
        }
        if segment.flags.has(Flags::CWR) {
            // tcp_ecn_accept_cwr: the sender's window may be very small.
            self.make_due();
        }
    }
}
