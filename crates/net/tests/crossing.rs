//! Packets from host to host over everything in this crate: none is lost unaccounted or made up, those of one flow keep
//! their order, and ties go as they are said to.

use aqm::law::pass::Pass;
use aqm::qdisc::fifo::{Fifo, Limit};
use aqm::{Cause, Delivery, Egress, Packet, Tap};
use base::{Ecn, FlowKey, Rate, Span, Time};
use net::{Bottleneck, Path, Towards, Underway, Watch};
use proptest::prelude::*;

const LINKS: [Rate; 2] = [Rate::from_bps(10_000_000), Rate::from_bps(4_000_000)];
const FLOWS: usize = 4;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Numbered {
    number: usize,
    flow: usize,
    side: usize,
    size: u32,
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

/// What was told of the bottleneck, of both directions.
#[derive(Default)]
struct Told {
    offered: usize,
    accepted: usize,
    delivered: usize,
    dropped: Vec<usize>,
    waiting: [u32; 2],
    most_waiting: u32,
    side: usize,
}

impl Tap<Numbered> for Told {
    fn accepted(&mut self, _packet: &Numbered, _now: Time) {
        self.accepted += 1;
    }
    fn dropped(&mut self, packet: Numbered, cause: Cause, _now: Time) {
        assert_eq!(cause, Cause::Tail);
        self.dropped.push(packet.number);
    }
    fn marked(&mut self, _packet: &Numbered, _cause: Cause, _now: Time) {
        unreachable!("nothing is marked");
    }
}

impl Watch<Numbered> for Told {
    fn offered(&mut self, packet: &Numbered, _now: Time) {
        self.side = packet.side;
        self.offered += 1;
    }
    fn waiting(&mut self, packets: u32, _now: Time) {
        self.waiting[self.side] = packets;
        self.most_waiting = self.most_waiting.max(packets);
    }
    fn delivered(&mut self, delivery: &Delivery<Numbered>) {
        // One in transmission and five before it, of 3 ms each at most.
        assert!(delivery.waited <= Span::from_ms(18));
        self.delivered += 1;
    }
}

/// Hosts that send when they are told to, and the network between them.
struct World {
    access: Rate,
    paths: [Path; FLOWS],
    underway: Underway<Numbered>,
    bottleneck: Bottleneck<Numbered>,
    told: Told,
    lost: usize,
    arrived: Vec<(Time, Numbered)>,
}

impl World {
    fn new(access: Rate) -> Self {
        let egress = |rate| Egress::new(rate, Box::new(Fifo::new(Limit::Packets(6), Pass)));
        Self {
            access,
            paths: [1, 5, 5, 20].map(|ms| Path::new(Span::from_ms(ms), Time::ZERO)),
            underway: Underway::with_capacity(16),
            bottleneck: Bottleneck::new(LINKS.map(egress)),
            told: Told::default(),
            lost: 0,
            arrived: Vec::new(),
        }
    }

    fn takes(&self, packet: &Numbered) -> Span {
        self.access.time_for(u64::from(packet.size))
    }

    fn send(&mut self, packet: Numbered, now: Time, is_lost: bool) {
        let takes = self.takes(&packet);
        let fate = || (!is_lost).then_some(Span::ZERO);
        match self.paths[packet.flow].send(packet.side, takes, now, fate) {
            Some(at) => self.underway.push(at, Towards::Bottleneck(packet.side), packet),
            None => self.lost += 1,
        }
    }

    /// Everything until and at `until`, in the order of ties.
    fn advance(&mut self, until: Time) {
        loop {
            let (link_at, side) = self.bottleneck.next_event();
            let (at, towards) = self.underway.next().unwrap_or((Time::NEVER, Towards::Host));
            if link_at.min(at) > until || !link_at.min(at).is_set() {
                return;
            }
            if net::link_goes_first(link_at, at) {
                self.told.side = side;
                if let Some(delivery) = self.bottleneck.advance(side, link_at, &mut self.told) {
                    let (packet, takes) = (delivery.packet, self.takes(&delivery.packet));
                    let received = self.paths[packet.flow].receive(1 - side, takes, delivery.at);
                    self.underway.push(received, Towards::Host, packet);
                }
                continue;
            }
            let packet = self.underway.pop(towards).expect("it is next");
            match towards {
                Towards::Bottleneck(side) => self.bottleneck.offer(side, packet, at, &mut self.told),
                Towards::Host => self.arrived.push((at, packet)),
            }
        }
    }

    fn held(&self) -> usize {
        let on_links: usize = [Towards::Bottleneck(0), Towards::Bottleneck(1), Towards::Host]
            .map(|towards| self.underway.each(towards).count())
            .iter()
            .sum();
        let in_queues = self.told.waiting.iter().sum::<u32>() as usize;
        on_links + in_queues + self.bottleneck.egress().iter().filter(|egress| egress.sending().is_some()).count()
    }
}

proptest! {
    #[test]
    fn packets_are_conserved_and_flows_keep_their_order(
        sends in prop::collection::vec((0_u64..1_000_000, 0..FLOWS, 0_usize..2, 40_u32..=1500, 0_u8..20), 1..300),
        access in prop::sample::select(vec![2_000_000_u64, 10_000_000, 1_000_000_000]),
    ) {
        let mut world = World::new(Rate::from_bps(access));
        let mut now = Time::ZERO;
        let mut sent_at = Vec::new();
        for (number, (gap, flow, side, size, fate)) in sends.iter().copied().enumerate() {
            now += Span::from_ns(gap);
            world.advance(now);
            world.send(Numbered { number, flow, side, size }, now, fate == 0);
            sent_at.push(now);
            let known = world.lost + world.told.dropped.len() + world.arrived.len() + world.held();
            prop_assert_eq!(known, number + 1);
        }
        world.advance(Time::from_ns(u64::MAX - 1));
        prop_assert_eq!(world.held(), 0);
        world.bottleneck.egress().iter().for_each(Egress::assert_conserved);
        let Told { offered, accepted, delivered, .. } = world.told;
        prop_assert_eq!(offered, accepted + world.told.dropped.len());
        prop_assert_eq!((accepted, delivered), (world.arrived.len(), world.arrived.len()));
        prop_assert_eq!(offered + world.lost, sends.len());
        prop_assert!(world.arrived.is_sorted_by_key(|&(at, _)| at));
        for flow in 0..FLOWS {
            for side in [0, 1] {
                let of_flow = |&&(_, packet): &&(Time, Numbered)| packet.flow == flow && packet.side == side;
                let numbers = world.arrived.iter().filter(of_flow).map(|(_, packet)| packet.number);
                prop_assert!(numbers.is_sorted(), "flow {} of side {}", flow, side);
            }
        }
        for (at, packet) in &world.arrived {
            // Two access links and the delay; the link's serializer may round up by what it carries over.
            let least = world.takes(packet).ns() * 2 + world.paths[packet.flow].delay.ns()
                + LINKS[packet.side].time_for(u64::from(packet.size)).ns();
            prop_assert!(at.since(sent_at[packet.number]).ns() >= least);
        }
    }
}

/// A packet that is at the bottleneck when the one before has just been sent finds the link free.
#[test]
fn the_bottleneck_comes_before_arrivals_of_the_same_instant() {
    // 1250 bytes take 1 ms on both the access link and the link.
    let mut world = World::new(LINKS[0]);
    world.bottleneck =
        Bottleneck::new(LINKS.map(|rate| Egress::new(rate, Box::new(Fifo::new(Limit::Packets(1), Pass)))));
    for number in 0..50 {
        world.send(Numbered { number, flow: 0, side: 0, size: 1250 }, Time::ZERO, false);
    }
    world.advance(Time::from_ns(1_000_000_000));
    assert_eq!((world.arrived.len(), world.told.dropped.len()), (50, 0));
    // The access link, a delay of 1 ms, the link and the access link again: a packet each millisecond.
    let expected = |number: u64| Time::from_ns((number + 1 + 1 + 1 + 1) * 1_000_000);
    assert!(world.arrived.iter().all(|&(at, packet)| at == expected(packet.number as u64)));
    assert_eq!(world.told.most_waiting, 0, "none has waited behind another");
}

#[test]
fn forward_goes_before_reverse() {
    let rate = LINKS[0];
    let egress = |_| Egress::new(rate, Box::new(Fifo::new(Limit::Packets(1), Pass)));
    let mut bottleneck: Bottleneck<Numbered> = Bottleneck::new([0, 1].map(egress));
    let mut told = Told::default();
    for side in [1, 0] {
        bottleneck.offer(side, Numbered { number: side, flow: 0, side, size: 1250 }, Time::ZERO, &mut told);
    }
    let at = Time::from_ns(1_000_000);
    for side in [0, 1] {
        assert_eq!(bottleneck.next_event(), (at, side));
        let delivery = bottleneck.advance(side, at, &mut told).expect("its last bit has left");
        assert_eq!((delivery.packet.number, delivery.at), (side, at));
    }
    assert_eq!(bottleneck.next_event().0, Time::NEVER);
}
