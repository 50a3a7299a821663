//! Hosts with several connections: the access links that these share, and the clock by which a delay emulator on the
//! host works.
//!
//! A delay emulator such as FreeBSD's dummynet works once in each tick of its host's clock. It notes in which tick a
//! packet came, and sends it on at the beginning of the tick that is so many later. A packet is therefore delayed by up
//! to a tick less than it should be, and packets that came within one tick leave together.

use crate::path::{AccessLink, Path};
use base::{Span, Stream, Time};

/// The hosts that have links to share or a clock, by number.
#[derive(Debug)]
pub struct Hosts {
    all: Vec<Option<Host>>,
    seed: u64,
    shares_links: bool,
}

#[derive(Clone, Copy, Debug)]
struct Host {
    sends: AccessLink,
    receives: AccessLink,
    /// The clock of the delay emulator on it, if there is one.
    clock: Option<Clock>,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    tick: Span,
    /// How long the tick had lasted in which the run began.
    phase: Span,
}

impl Hosts {
    /// No host yet. `shares_links` says that the connections of a host share its access links; otherwise each has its
    /// own. Clocks of hosts are at an instant of their own within a tick, drawn by `seed`.
    pub const fn new(seed: u64, shares_links: bool) -> Self {
        Self { all: Vec::new(), seed, shares_links }
    }

    /// Bytes that hosts take whose numbers are below `numbers`.
    pub const fn bytes(numbers: u64) -> u64 {
        numbers * size_of::<Option<Host>>() as u64
    }

    fn host(&mut self, number: u32) -> &mut Host {
        let at = number as usize;
        if self.all.len() <= at {
            self.all.resize(at + 1, None);
        }
        let idle = AccessLink::new(Time::ZERO);
        self.all[at].get_or_insert(Host { sends: idle, receives: idle, clock: None })
    }

    /// The clock on host `number`, which need not have been seen.
    fn clock(&self, number: u32) -> Option<Clock> {
        self.all.get(number as usize)?.as_ref()?.clock
    }

    /// Puts a delay emulator whose clock has this `tick` on host `number`, unless there is one.
    pub fn put_clock(&mut self, number: u32, tick: Span) {
        if self.host(number).clock.is_none() {
            let share = Stream::named(self.seed, &format!("host/{number}/clock")).unit();
            let phase = Span::from_ns((share * tick.ns() as f64) as u64);
            self.host(number).clock = Some(Clock { tick, phase });
        }
    }

    /// When a packet reaches the first link that host `number`, at the end `side` of `path`, sends at `now`: as
    /// [`Path::send`] says it, but at a tick of the host's clock if it has one.
    pub fn send(
        &mut self,
        number: u32,
        (path, side): (&mut Path, usize),
        (takes, now): (Span, Time),
        fate: impl FnOnce() -> Option<Span>,
    ) -> Option<Time> {
        if self.shares_links {
            path.sends[side] = self.host(number).sends;
        }
        let arrives = path.send(side, takes, now, fate);
        if self.shares_links {
            self.host(number).sends = path.sends[side];
        }
        let left_at = path.sends[side].free_at();
        let early = self.clock(number).map_or(Span::ZERO, |clock| clock.since_tick(left_at));
        arrives.map(|at| Time::from_ns(at.ns().saturating_sub(early.ns())).max(left_at))
    }

    /// When a packet has crossed the access link of host `number`, at the end `side` of `path`, which receives it: as
    /// [`Path::receive`] says it. Packets come in the order in which they left the last link: behind it, the
    /// connections of a host that shares its links have one delay.
    pub fn receive(&mut self, number: u32, (path, side): (&mut Path, usize), takes: Span, left_at: Time) -> Time {
        if !self.shares_links {
            return path.receive(side, takes, left_at);
        }
        let host = self.host(number);
        path.receives[side] = host.receives;
        let received = path.receive(side, takes, left_at);
        host.receives = path.receives[side];
        received
    }
}

impl Clock {
    /// How long the present tick has lasted at `now`.
    fn since_tick(&self, now: Time) -> Span {
        Span::from_ns((now.ns() + self.phase.ns()) % self.tick.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::DelayAt;

    const TAKES: Span = Span::from_us(120);
    const TICK: Span = Span::from_ms(10);

    fn path(delay_ms: u64) -> Path {
        Path::new(Span::from_ms(delay_ms), DelayAt::Clients, 1, Time::ZERO)
    }

    #[test]
    fn connections_of_a_host_wait_for_each_other_and_those_of_another_do_not() {
        let mut hosts = Hosts::new(1, true);
        let (mut one, mut other) = (path(0), path(0));
        let mut send =
            |number, path: &mut Path| hosts.send(number, (path, 1), (TAKES, Time::ZERO), || Some(Span::ZERO));
        let in_line = |place: u64| Some(Time::ZERO + Span::from_ns(place * TAKES.ns()));
        assert_eq!([send(3, &mut one), send(3, &mut other), send(4, &mut other)], [1, 2, 1].map(in_line));
        let mut receive = |number, path: &mut Path| hosts.receive(number, (path, 0), TAKES, Time::ZERO);
        let received = [receive(3, &mut one), receive(3, &mut other), receive(4, &mut other)];
        assert_eq!(received.map(Some), [1, 2, 1].map(in_line));
    }

    #[test]
    fn without_shared_links_each_connection_has_its_own() {
        let mut hosts = Hosts::new(1, false);
        let (mut one, mut other) = (path(5), path(5));
        let alone = |path: &mut Path| path.send(1, TAKES, Time::ZERO, || Some(Span::ZERO));
        let expected = [alone(&mut path(5)), alone(&mut path(5))];
        let mut send = |path: &mut Path| hosts.send(3, (path, 1), (TAKES, Time::ZERO), || Some(Span::ZERO));
        assert_eq!([send(&mut one), send(&mut other)], expected);
    }

    /// Packets of many instants leave at ticks alone, the same of each host, no later than their delay and less than a
    /// tick sooner, and in their order.
    #[test]
    fn a_delay_emulator_lets_packets_go_at_ticks() {
        let mut hosts = Hosts::new(7, false);
        let delay = Span::from_ms(40);
        let mut phases = Vec::new();
        for number in 0..50 {
            let (mut path, mut last, mut phase) = (path(20), Time::ZERO, None);
            hosts.put_clock(number, TICK);
            for k in 0..200_u64 {
                let now = Time::from_ns(k * 1_234_567);
                let sent = hosts.send(number, (&mut path, 1), (TAKES, now), || Some(Span::ZERO));
                let (at, due) = (sent.expect("it is not lost"), now + TAKES + delay);
                assert!(at <= due && due.since(at) < TICK && at >= last, "{at:?} {due:?}");
                assert_eq!(*phase.get_or_insert(at.ns() % TICK.ns()), at.ns() % TICK.ns());
                last = at;
            }
            phases.push(phase.expect("packets were sent"));
        }
        phases.sort_unstable();
        phases.dedup();
        assert!(phases.len() > 40, "clocks of hosts are set by no other's");
    }

    /// The memory that they take is reckoned from the hosts that have a clock.
    #[test]
    fn hosts_with_nothing_of_their_own_are_not_kept() {
        let mut hosts = Hosts::new(7, false);
        let mut path = path(5);
        hosts.put_clock(3, TICK);
        hosts.send(1_000_000, (&mut path, 1), (TAKES, Time::ZERO), || Some(Span::ZERO));
        hosts.receive(2_000_000, (&mut path, 0), TAKES, Time::ZERO);
        assert_eq!(hosts.all.len(), 4);
    }

    #[test]
    fn a_delay_of_less_than_a_tick_is_none() {
        let mut hosts = Hosts::new(7, false);
        let mut path = path(0);
        hosts.put_clock(1, TICK);
        let sent = hosts.send(1, (&mut path, 1), (TAKES, Time::ZERO), || Some(Span::ZERO));
        assert_eq!(sent, Some(Time::ZERO + TAKES));
    }
}
