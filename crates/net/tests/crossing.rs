//! Packets from host to host over everything in this crate, on random networks: none is lost unaccounted or made up,
//! those of one flow keep their order on each link, what leaves one link arrives at the next, and ties go as they are
//! said to.

use aqm::law::pass::Pass;
use aqm::qdisc::fifo::{Fifo, Limit};
use aqm::{Cause, Delivery, Egress, Headers, Packet, Tap};
use base::{Ecn, FlowKey, Rate, Span, Time};
use net::{Delay, DelayAt, Net, Path, Port, Routes, Step, Towards, Underway, Watch};
use proptest::prelude::*;

const FLOWS: usize = 4;
const MBPS: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Numbered {
    number: usize,
    flow: usize,
    side: usize,
    size: u32,
    step: Step,
}

impl Packet for Numbered {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark(&mut self) {
        unreachable!("no packet is ECN-capable");
    }
    fn flow(&self) -> FlowKey {
        FlowKey(self.flow as u64)
    }
}

/// What was told of one port.
#[derive(Clone, Default)]
struct Told {
    offered: Vec<Numbered>,
    accepted: usize,
    delivered: Vec<Numbered>,
    dropped: Vec<usize>,
    /// What has just left, and when it is at the next link or its host.
    left: Option<(Numbered, Time)>,
}

impl Tap<Numbered> for &mut Told {
    fn accepted(&mut self, _packet: &Numbered, _now: Time) {
        self.accepted += 1;
    }
    fn dropped(&mut self, packet: Numbered, cause: Cause, _now: Time) {
        assert_eq!(cause, Cause::TAIL);
        self.dropped.push(packet.number);
    }
    fn marked(&mut self, _packet: &Numbered, _cause: Cause, _now: Time) {
        unreachable!("nothing is marked");
    }
}

impl Headers<Numbered> for &mut Told {}

impl Watch<Numbered> for &mut Told {
    fn offered(&mut self, packet: &Numbered, _now: Time) {
        self.offered.push(*packet);
    }
    fn delivered(&mut self, delivery: &Delivery<Numbered>, arrives: Time) {
        self.delivered.push(delivery.packet);
        self.left = Some((delivery.packet, arrives));
    }
}

/// A link of a network: its rates in Mb/s, the packets that it has room for, the delay behind it.
type Link = ([u64; 2], u32, u64);

/// Hosts that send when they are told to, and the network between them. The forward route of each flow is given, the
/// reverse one is the same backwards.
struct World {
    access: Rate,
    paths: [Path; FLOWS],
    steps: [[Step; 2]; FLOWS],
    underway: Underway<Numbered>,
    net: Net<Numbered, Told>,
    routes: Routes,
    lost: usize,
    arrived: Vec<(Time, Numbered)>,
}

impl World {
    fn new(access: u64, links: &[Link], routes_of: [&[u16]; FLOWS], lies: DelayAt) -> Self {
        let port = |&([forward, reverse], limit, delay_ms): &Link| {
            let queue = move || Box::new(Fifo::new(Limit::Packets(limit), Pass));
            [forward, reverse].map(|mbps| {
                let egress = Egress::new(Rate::from_bps(mbps * MBPS), queue());
                (egress, Delay::constant(Span::from_ms(delay_ms)), Told::default())
            })
        };
        let mut routes = Routes::default();
        let steps = routes_of.map(|links| {
            let forward: Vec<Port> = links.iter().map(|&link| Port::new(link, 0)).collect();
            let reverse: Vec<Port> = links.iter().rev().map(|&link| Port::new(link, 1)).collect();
            [routes.add(&forward), routes.add(&reverse)]
        });
        Self {
            access: Rate::from_bps(access),
            paths: [1, 5, 5, 20].map(|ms| Path::new(Span::from_ms(ms), lies, 0, Time::ZERO)),
            steps,
            underway: Underway::with_capacity(16, 2 * links.len()),
            net: Net::new(links.iter().flat_map(port)),
            routes,
            lost: 0,
            arrived: Vec::new(),
        }
    }

    fn takes(&self, packet: &Numbered) -> Span {
        self.access.time_for(u64::from(packet.size))
    }

    fn send(&mut self, number: usize, flow: usize, side: usize, size: u32, now: Time, is_lost: bool) {
        let packet = Numbered { number, flow, side, size, step: self.steps[flow][side] };
        let takes = self.takes(&packet);
        let fate = || (!is_lost).then_some(Span::ZERO);
        match self.paths[flow].send(side, takes, now, fate) {
            Some(at) => self.underway.push(at, Towards::Link(self.routes.port(packet.step)), packet),
            None => self.lost += 1,
        }
    }

    /// Everything until and at `until`, in the order of ties.
    fn advance(&mut self, until: Time) {
        loop {
            let (link_at, port) = self.net.next_event();
            let (at, towards) = self.underway.next().unwrap_or((Time::NEVER, Towards::Host));
            if link_at.min(at) > until || !link_at.min(at).is_set() {
                return;
            }
            if net::link_goes_first(link_at, at) {
                self.net.advance(port, link_at, |told| told);
                if let Some((packet, arrives)) = self.net.own(port).left.take() {
                    self.go_on(packet, arrives);
                }
                continue;
            }
            let packet = self.underway.pop(towards).expect("it is next");
            match towards {
                Towards::Link(port) => self.net.offer(port, packet, at, |told| told),
                Towards::Host => self.arrived.push((at, packet)),
            }
        }
    }

    fn go_on(&mut self, packet: Numbered, at: Time) {
        let (step, at, towards) = match self.routes.after(packet.step) {
            Some(step) => (step, at, Towards::Link(self.routes.port(step))),
            None => {
                let takes = self.takes(&packet);
                let received = self.paths[packet.flow].receive(1 - packet.side, takes, at);
                (packet.step, received, Towards::Host)
            }
        };
        self.underway.push(at, towards, Numbered { step, ..packet });
    }

    fn held(&self) -> usize {
        let towards = (0..self.net.ports().len()).map(|port| Towards::Link(Port::at(port))).chain([Towards::Host]);
        let on_their_way: usize = towards.map(|towards| self.underway.each(towards).count()).sum();
        let waiting = self.net.ports().map(|(egress, _)| egress.backlog().packets).sum::<u32>() as usize;
        on_their_way + waiting + self.net.ports().filter(|(egress, _)| egress.sending().is_some()).count()
    }

    fn told(&self) -> impl Iterator<Item = &Told> {
        self.net.ports().map(|(_, told)| told)
    }

    fn dropped(&self) -> usize {
        self.told().map(|told| told.dropped.len()).sum()
    }
}

/// One to four links, and for each flow some of them in any order.
fn networks() -> impl Strategy<Value = (Vec<Link>, Vec<Vec<u16>>)> {
    let link = ((1_u64..20, 1_u64..20), 1_u32..8, 0_u64..4).prop_map(|((a, b), limit, delay)| ([a, b], limit, delay));
    prop::collection::vec(link, 1..=4).prop_flat_map(|links| {
        let all: Vec<u16> = (0..links.len() as u16).collect();
        let route = (Just(all).prop_shuffle(), 1..=links.len()).prop_map(|(all, length)| all[..length].to_vec());
        (Just(links), prop::collection::vec(route, FLOWS))
    })
}

proptest! {
    #[test]
    fn packets_are_conserved_and_flows_keep_their_order(
        sends in prop::collection::vec((0_u64..1_000_000, 0..FLOWS, 0_usize..2, 40_u32..=1500, 0_u8..20), 1..300),
        access in prop::sample::select(vec![2 * MBPS, 10 * MBPS, 1_000 * MBPS]),
        (links, routes) in networks(),
        lies in prop::sample::select(vec![DelayAt::Senders, DelayAt::Left, DelayAt::Right, DelayAt::Clients]),
    ) {
        let routes_of: [&[u16]; FLOWS] = std::array::from_fn(|flow| &routes[flow][..]);
        let mut world = World::new(access, &links, routes_of, lies);
        let mut now = Time::ZERO;
        let mut sent_at = Vec::new();
        for (number, (gap, flow, side, size, fate)) in sends.iter().copied().enumerate() {
            now += Span::from_ns(gap);
            world.advance(now);
            world.send(number, flow, side, size, now, fate == 0);
            sent_at.push(now);
            prop_assert_eq!(world.lost + world.dropped() + world.arrived.len() + world.held(), number + 1);
        }
        world.advance(Time::from_ns(u64::MAX - 1));
        prop_assert_eq!(world.held(), 0);
        world.net.ports().for_each(|(egress, _)| egress.assert_conserved());
        prop_assert_eq!(world.lost + world.dropped() + world.arrived.len(), sends.len());
        prop_assert!(world.arrived.is_sorted_by_key(|&(at, _)| at));
        for told in world.told() {
            prop_assert_eq!(told.offered.len(), told.accepted + told.dropped.len());
            prop_assert_eq!(told.accepted, told.delivered.len());
        }
        let numbers = |packets: &mut dyn Iterator<Item = &Numbered>, flow: usize, side: usize| -> Vec<usize> {
            packets.filter(|packet| packet.flow == flow && packet.side == side).map(|packet| packet.number).collect()
        };
        for flow in 0..FLOWS {
            for side in [0, 1] {
                // From link to link: what left the one, in that order, is what came to the next.
                let mut left: Option<Vec<usize>> = None;
                for step in world.routes.route(world.steps[flow][side]) {
                    let port = world.routes.port(step);
                    let told = world.told().nth(port.index()).expect("it is one of them");
                    let came = numbers(&mut told.offered.iter(), flow, side);
                    prop_assert!(came.is_sorted(), "flow {} of side {}", flow, side);
                    prop_assert!(left.is_none_or(|left| left == came));
                    left = Some(numbers(&mut told.delivered.iter(), flow, side));
                }
                let arrived = numbers(&mut world.arrived.iter().map(|(_, packet)| packet), flow, side);
                prop_assert_eq!(left.unwrap_or_default(), arrived);
            }
        }
        for (at, packet) in &world.arrived {
            // Two access links and the delay, each link and the delay behind it. A link carries over what rounding to
            // nanoseconds leaves, and so may come a nanosecond before what it takes alone.
            let mut least = world.takes(packet).ns() * 2 + world.paths[packet.flow].delay_from(packet.side).ns();
            for &link in &routes[packet.flow] {
                let (rates, _, delay_ms) = links[usize::from(link)];
                let takes = Rate::from_bps(rates[packet.side] * MBPS).time_for(u64::from(packet.size));
                least += takes.ns() + Span::from_ms(delay_ms).ns();
            }
            prop_assert!(at.since(sent_at[packet.number]).ns() >= least);
        }
    }
}

const ONE: [&[u16]; FLOWS] = [&[0]; FLOWS];

/// A packet that is at the link when the one before has just been sent finds the link free.
#[test]
fn a_link_comes_before_arrivals_of_the_same_instant() {
    // 1250 bytes take 1 ms on both the access link and each link.
    let links: [Link; 2] = [([10, 10], 1, 0), ([10, 10], 1, 3)];
    let mut world = World::new(10 * MBPS, &links, [&[0, 1]; FLOWS], DelayAt::Senders);
    for number in 0..50 {
        world.send(number, 0, 0, 1250, Time::ZERO, false);
    }
    world.advance(Time::from_ns(1_000_000_000));
    assert_eq!((world.arrived.len(), world.dropped()), (50, 0));
    // The access link, a delay of 1 ms, two links, 3 ms behind the second, and the access link again.
    let expected = |number: u64| Time::from_ns((number + 1 + 1 + 2 + 3 + 1) * 1_000_000);
    assert!(world.arrived.iter().all(|&(at, packet)| at == expected(packet.number as u64)));
    let end = Time::from_ns(1_000_000_000);
    assert!(world.net.ports().all(|(egress, _)| egress.waiting_packet_ns(end) == 0), "none has waited behind another");
}

#[test]
fn of_links_at_one_instant_the_first_goes_first_and_forward_before_reverse() {
    let links: [Link; 2] = [([10, 10], 1, 0), ([10, 10], 1, 0)];
    let mut world = World::new(10 * MBPS, &links, ONE, DelayAt::Senders);
    let ports = [0, 1, 2, 3].map(Port::at);
    for port in ports.into_iter().rev() {
        let packet = Numbered { number: port.index(), flow: 0, side: 0, size: 1250, step: Step::default() };
        world.net.offer(port, packet, Time::ZERO, |told| told);
    }
    let at = Time::from_ns(1_000_000);
    for port in ports {
        assert_eq!(world.net.next_event(), (at, port));
        world.net.advance(port, at, |told| told);
        let (packet, arrives) = world.net.own(port).left.expect("its last bit has left");
        assert_eq!((packet.number, arrives), (port.index(), at));
    }
    assert_eq!(world.net.next_event().0, Time::NEVER);
}
