//! A [`Path`] is what a connection's packets meet beside the links: its access links on both sides, and its propagation
//! delay.

use base::{Span, Time};

/// An access link, one way, which sends one packet after the other. The time that a packet takes is rounded to
/// nanoseconds. The remainder is not carried, as these links are mostly idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessLink {
    free_at: Time,
}

base::packed!(AccessLink { free_at });

impl AccessLink {
    /// A link that is free from `from` on.
    pub const fn new(from: Time) -> Self {
        Self { free_at: from }
    }

    /// Sends a packet that comes at `now` and takes `takes`. Returns when it has crossed.
    #[inline]
    pub fn carry(&mut self, takes: Span, now: Time) -> Time {
        self.free_at = self.free_at.max(now) + takes;
        self.free_at
    }

    /// When the link is free again.
    #[inline]
    pub const fn free_at(&self) -> Time {
        self.free_at
    }
}

/// Where the propagation delay of a connection lies. It is the same each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayAt {
    /// Behind the access link of whoever sends.
    #[default]
    Senders,
    /// Between the left hosts and the links.
    Left,
    /// Between the links and the right hosts.
    Right,
    /// All of it behind the access link of whoever opened the connection, for what that host sends.
    Clients,
}

/// What a connection's packets meet before and after the links.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Propagation delay one way before the first link, by the side that sends.
    before: [Span; 2],
    /// Propagation delay one way behind the last link, by the side that sends.
    behind: [Span; 2],
    pub(crate) sends: [AccessLink; 2],
    pub(crate) receives: [AccessLink; 2],
}

base::packed!(Path { before, behind, sends, receives });

impl Path {
    /// A path with this delay one way, half of that of a round trip, whose access links are free from `from` on.
    /// `client` is the side that opens the connection.
    pub const fn new(delay: Span, lies: DelayAt, client: usize, from: Time) -> Self {
        let [sends, receives] = [[AccessLink::new(from); 2]; 2];
        let mut path = Self { before: [Span::ZERO; 2], behind: [Span::ZERO; 2], sends, receives };
        path.set_delay(delay, lies, client);
        path
    }

    /// Changes the delay of packets that are sent from now on.
    pub const fn set_delay(&mut self, delay: Span, lies: DelayAt, client: usize) {
        let none = Span::ZERO;
        (self.before, self.behind) = match lies {
            DelayAt::Senders => ([delay, delay], [none, none]),
            DelayAt::Left => ([delay, none], [none, delay]),
            DelayAt::Right => ([none, delay], [delay, none]),
            DelayAt::Clients => {
                let mut before = [none, none];
                before[client] = Span::from_ns(2 * delay.ns());
                (before, [none, none])
            }
        };
    }

    /// Propagation delay one way: half of that of a round trip.
    pub fn delay(&self) -> Span {
        (self.delay_from(0) + self.delay_from(1)) / 2
    }

    /// Propagation delay of what `side` sends.
    pub fn delay_from(&self, side: usize) -> Span {
        self.before[side] + self.behind[side]
    }

    /// The part of the delay that packets sent by `side` have behind the last link.
    pub const fn behind(&self, side: usize) -> Span {
        self.behind[side]
    }

    /// Sends a packet of `side` at `now`, which takes `takes` on the access link. Returns when it reaches the first
    /// link; `None` if it is lost behind the access link. `fate` says how much later than others it comes, or that it
    /// is lost.
    #[inline]
    pub fn send(&mut self, side: usize, takes: Span, now: Time, fate: impl FnOnce() -> Option<Span>) -> Option<Time> {
        let left_at = self.sends[side].carry(takes, now);
        fate().map(|later| left_at + self.before[side] + later)
    }

    /// Takes a packet that left the last link at `left_at`. Returns when it has crossed the access link of `side`,
    /// which receives it.
    #[inline]
    pub fn receive(&mut self, side: usize, takes: Span, left_at: Time) -> Time {
        self.receives[side].carry(takes, left_at + self.behind[1 - side])
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
        let mut path = Path::new(DELAY, DelayAt::Senders, 0, Time::ZERO);
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
        let mut path = Path::new(DELAY, DelayAt::Senders, 0, Time::ZERO);
        let late = Span::from_ms(3);
        let fates = [None, Some(late), Some(Span::ZERO)];
        let arrives = fates.map(|fate| path.send(0, TAKES, Time::ZERO, || fate));
        let in_line = |place: u32| (0..place).fold(Time::ZERO + DELAY, |at, _| at + TAKES);
        assert_eq!(arrives, [None, Some(in_line(2) + late), Some(in_line(3))]);
    }

    #[test]
    fn a_receiver_has_one_packet_after_the_other() {
        let mut path = Path::new(DELAY, DelayAt::Senders, 0, Time::ZERO);
        let left_at = Time::from_ns(1000);
        assert_eq!(path.receive(1, TAKES, left_at), left_at + TAKES);
        assert_eq!(path.receive(1, TAKES, left_at), left_at + TAKES + TAKES);
        assert_eq!(path.receive(0, TAKES, left_at), left_at + TAKES);
    }

    #[test]
    fn a_delay_lies_on_one_side_or_behind_each_sender() {
        for (lies, before) in [(DelayAt::Senders, [1, 1]), (DelayAt::Left, [1, 0]), (DelayAt::Right, [0, 1])] {
            let mut path = Path::new(DELAY, lies, 0, Time::ZERO);
            for side in [0, 1] {
                let at_link = path.send(side, TAKES, Time::ZERO, || Some(Span::ZERO)).expect("it is not lost");
                assert_eq!(at_link.since(Time::ZERO + TAKES), if before[side] == 1 { DELAY } else { Span::ZERO });
                assert_eq!(path.receive(1 - side, TAKES, at_link), Time::ZERO + TAKES + DELAY + TAKES, "{lies:?}");
            }
            assert_eq!(path.delay(), DELAY);
        }
    }
}
