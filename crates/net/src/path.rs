//! The path of a connection, but for the bottleneck: its access links on both sides, and its propagation delay.

use base::{Span, Time};

/// An access link, one way: it sends one packet after the other. What a packet takes is rounded to nanoseconds, and
/// what rounding leaves over is forgotten: these links are mostly idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessLink {
    free_at: Time,
}

impl AccessLink {
    /// A link that is free from `from` on.
    pub const fn new(from: Time) -> Self {
        Self { free_at: from }
    }

    /// When a packet has crossed it that is there at `now` and takes `takes` to send.
    #[inline]
    pub fn carry(&mut self, takes: Span, now: Time) -> Time {
        self.free_at = self.free_at.max(now) + takes;
        self.free_at
    }

    /// When it is free again.
    #[inline]
    pub const fn free_at(&self) -> Time {
        self.free_at
    }
}

/// What a connection's packets meet before and after the bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Propagation delay one way, between the sending host's access link and the bottleneck.
    pub delay: Span,
    sends: [AccessLink; 2],
    receives: [AccessLink; 2],
}

impl Path {
    /// A path whose access links are free from `from` on.
    pub const fn new(delay: Span, from: Time) -> Self {
        Self { delay, sends: [AccessLink::new(from); 2], receives: [AccessLink::new(from); 2] }
    }

    /// When a packet reaches the bottleneck that `side` sends at `now` and that takes `takes` on the access link.
    /// `fate` says how much later than the others it comes; `None` if it is lost, behind the access link.
    #[inline]
    pub fn send(&mut self, side: usize, takes: Span, now: Time, fate: impl FnOnce() -> Option<Span>) -> Option<Time> {
        let left_at = self.sends[side].carry(takes, now);
        fate().map(|later| left_at + self.delay + later)
    }

    /// When a packet that left the bottleneck at `left_at` has crossed the access link of `side`.
    #[inline]
    pub fn receive(&mut self, side: usize, takes: Span, left_at: Time) -> Time {
        self.receives[side].carry(takes, left_at)
    }

    /// The access link on which `side` receives.
    #[inline]
    pub fn receiving(&mut self, side: usize) -> &mut AccessLink {
        &mut self.receives[side]
    }

    /// Whether `side` still has packets to put onto its access link at `now`.
    #[inline]
    pub fn is_sending(&self, side: usize, now: Time) -> bool {
        self.sends[side].free_at > now
    }

    /// When all of its access links are free again.
    pub fn busy_until(&self) -> Time {
        self.sends.iter().chain(&self.receives).map(AccessLink::free_at).max().expect("there are four")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: Span = Span::from_us(12);
    const DELAY: Span = Span::from_ms(20);

    #[test]
    fn packets_of_one_side_follow_each_other_and_those_of_the_other_do_not_wait() {
        let mut path = Path::new(DELAY, Time::ZERO);
        let now = Time::from_ns(5);
        let mut send = |side| path.send(side, TAKES, now, || Some(Span::ZERO));
        let first = now + TAKES + DELAY;
        assert_eq!([send(0), send(0), send(1)], [first, first + TAKES, first].map(Some));
        assert!(path.is_sending(0, now + TAKES) && !path.is_sending(0, now + TAKES + TAKES));
        assert!(!path.is_sending(1, now + TAKES));
        assert_eq!(path.busy_until(), now + TAKES + TAKES);
    }

    #[test]
    fn a_packet_that_is_lost_or_held_back_has_taken_its_time_on_the_access_link() {
        let mut path = Path::new(DELAY, Time::ZERO);
        let late = Span::from_ms(3);
        let fates = [None, Some(late), Some(Span::ZERO)];
        let arrives = fates.map(|fate| path.send(0, TAKES, Time::ZERO, || fate));
        let in_line = |place: u32| (0..place).fold(Time::ZERO + DELAY, |at, _| at + TAKES);
        assert_eq!(arrives, [None, Some(in_line(2) + late), Some(in_line(3))]);
    }

    #[test]
    fn a_receiver_has_one_packet_after_the_other() {
        let mut path = Path::new(DELAY, Time::ZERO);
        let left_at = Time::from_ns(1000);
        assert_eq!(path.receive(1, TAKES, left_at), left_at + TAKES);
        assert_eq!(path.receive(1, TAKES, left_at), left_at + TAKES + TAKES);
        assert_eq!(path.receive(0, TAKES, left_at), left_at + TAKES);
        let later = Time::from_ns(1_000_000);
        assert_eq!(path.receiving(1).carry(TAKES, later), later + TAKES);
    }
}
