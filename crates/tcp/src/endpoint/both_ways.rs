//! With the feature `both-ways` an endpoint takes each segment, each wake-up and each write both ways: a copy of it
//! goes the general way, and must come to the same state and send the same as the one that may take the plain path.
//!
//! So whatever drives endpoints compares the two: a whole simulation of thousands of users, too. The stories of this
//! crate's tests are compared in every build, by their own bench (`tests/common`).

use super::{Emit, Endpoint};
use crate::segment::Segment;

/// What was sent, in order.
#[derive(Default)]
pub(super) struct Sent(Vec<Segment>);

impl Emit for Sent {
    fn emit(&mut self, segment: Segment) {
        self.0.push(segment);
    }
}

impl Endpoint {
    /// Goes the short way, and compares that with what a copy comes to that goes the general way.
    ///
    /// # Panics
    /// Where the two differ, with both of them; `what` says what it was that they took.
    pub(super) fn both_ways(
        &mut self,
        what: &dyn std::fmt::Debug,
        out: &mut impl Emit,
        generally: impl FnOnce(&mut Self, &mut Sent),
        shortly: impl FnOnce(&mut Self, &mut Sent),
    ) {
        let mut copy = self.clone();
        let [mut sent, mut sent_generally] = [Sent::default(), Sent::default()];
        generally(&mut copy, &mut sent_generally);
        shortly(self, &mut sent);
        assert_eq!(sent.0, sent_generally.0, "what is sent after {what:?}");
        assert!(*self == copy, "the state after {what:?}\n  short: {self:?}\ngeneral: {copy:?}");
        sent.0.into_iter().for_each(|segment| out.emit(segment));
    }
}
