//! The plain path is a short way for segments as most are.
//!
//! A segment that comes while nothing is missing is nearly always one of three (V. Jacobson's header prediction):
//!
//! | | what it is | what it takes |
//! |---|---|---|
//! | data | for an end with nothing outstanding, and that says nothing new of it | the receiver alone |
//! | an acknowledgement | of new data sent once, at a sender that repairs nothing | the window grows, more is sent |
//! | a window | of a peer that has read, at such a sender | more is sent |
//!
//! Such a segment has no flag but ACK, PSH and, with accurate ECN, those that count marks, and reports nothing, and no
//! option counts bytes. Only an acknowledgement may count more marks than are known, and only at a sender whose
//! controller brings the window down by itself (Prague). Whether a sender may take it so is asked in `sender/plain.rs`.
//! Everything else goes the general way ([`Endpoint::on_segment_generally`]).
//!
//! ```text
//!   segment ─▶ plain? ─ yes ─▶ data: the receiver              ─▶ perhaps an acknowledgement
//!                │             news of data: the window        ─▶ push: what may be sent
//!                no
//!                ╰─▶ state ─▶ marks ─▶ acknowledgement, repair ─▶ data ─▶ push
//! ```
//!
//! What an application has written, and what had to wait for its paced departure, is sent in the same short way, where
//! nothing is missing ([`Endpoint::push`], [`Endpoint::on_wake`]).
//!
//! **The two do the same.** Every step of the general way that is left out here would have done nothing. A segment goes
//! the general way if there is a controller that wants to hear of silence or of the rate of delivery, a recovery, a
//! probe, or an application that does not read. Tests take each segment and each wake-up both ways and compare all of
//! the state and all that is sent, for written stories and for thousands of connections over bad paths
//! (`tests/common`). A build with the feature `both-ways` does so within whatever drives endpoints (`both_ways.rs`).

use super::{Emit, Endpoint, Outlet, State};
use crate::segment::{Flags, Segment};
use crate::stack::Config;
use base::Time;

impl Endpoint {
    /// Takes `segment` if it is plain. Returns whether it was.
    #[inline]
    pub(super) fn take_plainly(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) -> bool {
        let flags = segment.flags.without(Flags::PSH);
        let tells_marks = flags != self.sender.heard.plain;
        if tells_marks && !self.sender.expects_count(flags, segment, config)
            || !segment.sacks.is_bare()
            || self.state != State::Established
        {
            return false;
        }
        let Self { sender, receiver, .. } = self;
        if segment.payload > 0 {
            if !sender.learns_nothing(segment) {
                return false;
            }
            receiver.note_stamp(segment, config);
            receiver.on_data(segment, sender, config, now, out);
            receiver.note_echo(segment);
            return true;
        }
        if receiver.has_stopped() || receiver.heeds(segment) || !sender.expects(segment, config) {
            return false;
        }
        receiver.note_stamp(segment, config);
        receiver.note_echo(segment);
        sender.on_plain_ack(segment, tells_marks, config, now, &mut Outlet { receiver, emit: out });
        true
    }
}
