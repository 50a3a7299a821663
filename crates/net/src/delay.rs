//! This file delays packets behind a port by the propagation delay of the link, which may change.

use aqm::changes::{Change, Changes};
use base::{Span, Time};

/// A delay that packets pass in their order. When it becomes shorter, no packet overtakes the one before it.
#[derive(Debug)]
pub struct Delay {
    present: Span,
    changing: Option<Box<Changing>>,
}

#[derive(Debug)]
struct Changing {
    changes: Changes,
    next: Option<Change>,
    last: Time,
}

impl Delay {
    /// A delay that does not change.
    pub const fn constant(delay: Span) -> Self {
        Self { present: delay, changing: None }
    }

    /// A delay that is `first` at the start of the run, and then follows `changes`.
    pub fn changing(first: Span, mut changes: Changes) -> Self {
        let next = changes.next();
        Self { present: first, changing: Some(Box::new(Changing { changes, next, last: Time::ZERO })) }
    }

    /// When a packet that left the port at `left_at` has passed. Call it with instants that never go back.
    #[inline]
    pub fn pass(&mut self, left_at: Time) -> Time {
        if self.changing.is_some() { self.pass_changing(left_at) } else { left_at + self.present }
    }

    #[cold]
    fn pass_changing(&mut self, left_at: Time) -> Time {
        let Some(Changing { changes, next, last }) = self.changing.as_deref_mut() else { return left_at };
        while let Some(change) = next.filter(|change| change.at <= left_at) {
            self.present = change.condition.delay;
            *next = changes.next();
        }
        // It may not even arrive at the same instant: events of one instant have an order of their own, which would
        // not be that of leaving.
        *last = (left_at + self.present).max(*last + Span::from_ns(1));
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqm::changes::{Condition, Moment, Pattern};
    use base::{Rate, Stream};
    use std::sync::Arc;

    #[test]
    fn a_shorter_delay_lets_nobody_overtake() {
        let ms = Span::from_ms;
        let like = |delay| [Condition { rate: Rate::from_bps(1), delay: ms(delay) }; 2];
        let moment = |after, delay| Moment { after: ms(after), conditions: like(delay), outage: Span::ZERO };
        let pattern = Pattern::Schedule { start: like(30), moments: vec![moment(10, 5), moment(50, 40)], period: None };
        let mut delay = Delay::changing(ms(30), Changes::new(Arc::new(pattern), 0, Stream::named(1, "")));
        let passed = [0, 9, 10, 20, 40, 49, 50].map(|at| delay.pass(Time::ZERO + ms(at)).ns() / 1_000_000);
        assert_eq!(passed, [30, 39, 39, 39, 45, 54, 90]);
        assert_eq!(Delay::constant(ms(3)).pass(Time::ZERO), Time::ZERO + ms(3));
    }
}
