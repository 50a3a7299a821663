//! The router keeps of each flow its route, its propagation delay, and when its access links are free.
//!
//! The delay is the one that the flow's host announced ([`crate::paths`]). A flow that nobody announced, such as a
//! foreign program's, has the route of the first block of traffic. Its delay is drawn from the path's distribution, by
//! a random stream that is named by the flow. When a port is used again, a new connection opens: at its SYN the delay
//! that was announced last becomes the flow's.
//!
//! The flows stand in a hash table with a fixed hash and chains through a slab. A flow that has been silent for a while
//! may be forgotten if its delay is not needed any more or can be drawn again: its connection has ended, or nobody
//! announced it.

use crate::paths::Announced;
use base::{FlowKey, Span, Stream, Time};
use net::{DelayAt, Step};
use scenario::RttSpec;

/// What is kept of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Its delay and its access links.
    pub path: net::Path,
    /// The first step of its packets, by the side that sends.
    pub steps: [Step; 2],
    /// Whether its delay comes from an announcement, which is not repeated.
    is_kept: bool,
    /// Whether each side has closed its direction of the connection.
    is_ended: [bool; 2],
    /// Block and delay of the connection that is about to use its ports again, from its SYN on.
    next: Option<(u16, Span)>,
}

impl Flow {
    /// Notes that `side` has closed its direction of the connection, or both directions if it `resets`. Once both are
    /// closed, the last packets come soon. While one is open, it may be silent for long and then go on (RFC 9293 §3.6).
    #[inline]
    pub fn end(&mut self, side: usize, resets: bool) {
        self.is_ended[side] = true;
        self.is_kept &= !resets && self.is_ended != [true; 2];
    }
}

struct Slot {
    key: FlowKey,
    next: u32,
    flow: Flow,
}

const NONE: u32 = u32::MAX;
/// How long a flow is remembered at least after its last packet.
const REMEMBERED: Span = Span::from_secs(10);

/// All flows that were seen lately, or announced.
pub struct Flows {
    /// Heads of chains; a power of two.
    heads: Vec<u32>,
    slots: Vec<Slot>,
    ways: Ways,
    seed: u64,
    announced: Announced,
    /// How many flows came.
    seen: u64,
    /// How many of these were unannounced.
    drawn: u64,
}

/// The ways of flows through the network.
pub struct Ways {
    /// The delays of flows that nobody announces.
    pub rtt: RttSpec,
    /// For each block of traffic, the first steps of its packets by the side that sends, and where its delay lies.
    pub blocks: Vec<([Step; 2], DelayAt)>,
}

impl Flows {
    /// A table without flows.
    pub fn new(ways: Ways, seed: u64, announced: Announced) -> Self {
        let (heads, slots) = (vec![NONE; 1 << 14], Vec::with_capacity(1 << 14));
        Self { heads, slots, ways, seed, announced, seen: 0, drawn: 0 }
    }

    /// The first steps of the packets of each block of traffic.
    pub fn steps(&self) -> impl Iterator<Item = [Step; 2]> {
        self.ways.blocks.iter().map(|(steps, _)| *steps)
    }

    /// How many flows came that were not remembered.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How many of these flows nobody had announced.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// The flow of `key`, made if it is not known. `opens` says that a packet opens a connection there.
    #[inline]
    pub fn flow(&mut self, key: FlowKey, opens: bool, now: Time) -> &mut Flow {
        let mut at = self.find(key);
        if at == NONE || opens {
            at = self.look_up(key, now);
        }
        let flow = &mut self.slots[at as usize].flow;
        if opens && let Some((block, delay)) = flow.next.take() {
            let (steps, delay_at) = self.ways.blocks[usize::from(block)];
            flow.path.set_delay(delay, delay_at, 0);
            (flow.steps, flow.is_kept, flow.is_ended) = (steps, true, [false; 2]);
        }
        flow
    }

    #[inline]
    fn find(&self, key: FlowKey) -> u32 {
        let mut at = self.heads[self.head(key)];
        while at != NONE && self.slots[at as usize].key != key {
            at = self.slots[at as usize].next;
        }
        at
    }

    fn head(&self, key: FlowKey) -> usize {
        key.hash(0) as usize & (self.heads.len() - 1)
    }

    /// Hears what was announced, and makes a flow of `key` if there is none then.
    #[cold]
    fn look_up(&mut self, key: FlowKey, now: Time) -> u32 {
        let mut announced = std::mem::take(&mut self.announced);
        announced.hear(|key, block, delay| {
            match self.find(key) {
                NONE => {
                    let at = self.insert(key, block, delay, now);
                    self.slots[at as usize].flow.is_kept = true;
                }
                // Until the new connection's SYN, packets belong to the connection before.
                at => self.slots[at as usize].flow.next = Some((block, delay)),
            }
        });
        self.announced = announced;
        match self.find(key) {
            NONE => {
                self.drawn += 1;
                self.insert(key, 0, self.draw(key), now)
            }
            at => at,
        }
    }

    fn insert(&mut self, key: FlowKey, block: u16, delay: Span, now: Time) -> u32 {
        if self.slots.len() == self.heads.len() {
            self.make_room(now);
        }
        self.seen += 1;
        let (steps, delay_at) = self.ways.blocks[usize::from(block)];
        let path = net::Path::new(delay, delay_at, 0, now);
        let flow = Flow { path, steps, is_kept: false, is_ended: [false; 2], next: None };
        let head = self.head(key);
        let place = self.slots.len() as u32;
        self.slots.push(Slot { key, next: self.heads[head], flow });
        self.heads[head] = place;
        place
    }

    /// Draws the propagation delay of a flow that nobody announced. If the scenario spreads delays evenly over its
    /// flows, it is drawn uniformly, since the number of flows is not known here.
    fn draw(&self, key: FlowKey) -> Span {
        self.ways.rtt.at(Stream::named(self.seed, &format!("live/flow/{:016x}/rtt", key.0)).open_unit()) / 2
    }

    /// Forgets silent flows, and doubles the room if more than half of it is still taken. The cost is one or two looks
    /// at each flow, whatever their number.
    fn make_room(&mut self, now: Time) {
        let is_kept = |flow: &Flow| flow.is_kept || flow.next.is_some();
        self.slots.retain(|slot| is_kept(&slot.flow) || slot.flow.path.busy_until() + REMEMBERED > now);
        let doubles = self.slots.len() > self.heads.len() / 2;
        let heads = self.heads.len() << u32::from(doubles);
        self.heads.clear();
        self.heads.resize(heads, NONE);
        self.slots.reserve(heads - self.slots.len());
        for place in 0..self.slots.len() {
            let head = self.head(self.slots[place].key);
            self.slots[place].next = self.heads[head];
            self.heads[head] = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::announcers;
    use base::Distribution;

    fn flows() -> Flows {
        flows_with(Announced::nothing())
    }

    fn flows_with(announced: Announced) -> Flows {
        let rtt = RttSpec::Drawn(Distribution::Uniform(0.010, 0.150));
        let blocks = vec![([Step::default(); 2], DelayAt::Senders)];
        Flows::new(Ways { rtt, blocks }, 1, announced)
    }

    /// As many packets of flows that are new as make the table forget.
    fn crowd(flows: &mut Flows, now: Time) {
        for key in 100..100 + (1 << 14) {
            let _ = flows.flow(FlowKey(key), false, now);
        }
    }

    const LATER: Time = Time::from_ns(60_000_000_000);

    #[test]
    fn delays_are_drawn_of_the_distribution() {
        let mut flows = flows();
        let n = 20_000_u64;
        let delays: Vec<f64> =
            (0..n).map(|k| flows.flow(FlowKey(k), false, Time::ZERO).path.delay().secs_f64()).collect();
        assert!(delays.iter().all(|delay| (0.005..=0.075).contains(delay)));
        let mean = delays.iter().sum::<f64>() / n as f64;
        // Four standard errors of a uniform of width 70 ms.
        assert!((mean - 0.040).abs() < 4.0 * 0.070 / (12.0 * n as f64).sqrt(), "{mean}");
        assert_eq!((flows.seen(), flows.drawn()), (n, n));
    }

    #[test]
    fn a_flow_that_was_forgotten_has_its_delay_again() {
        let mut flows = flows();
        let before = flows.flow(FlowKey(7), false, Time::ZERO).path.delay();
        crowd(&mut flows, LATER);
        assert_eq!(flows.slots.len(), 1 << 14, "flow 7 has made room");
        assert_eq!(flows.flow(FlowKey(7), false, LATER).path.delay(), before);
        assert_eq!(flows.seen(), (1 << 14) + 2);
    }

    #[test]
    fn announced_delays_count_from_the_first_packet() {
        let ([announcer], announced) = announcers();
        let mut flows = flows_with(announced);
        let mut delay = |flow, opens, now| flows.flow(FlowKey(flow), opens, now).path.delay();
        announcer.connection(FlowKey(1), 0, Span::from_ms(200));
        announcer.connection(FlowKey(2), 0, Span::from_ms(300));
        assert_eq!(delay(2, true, Time::ZERO), Span::from_ms(300));
        assert_eq!(delay(1, false, Time::ZERO), Span::from_ms(200));
        assert!(delay(3, true, Time::ZERO) <= Span::from_ms(75), "nobody announced it");
        // The port is used again; until its SYN what comes is of the old connection.
        announcer.connection(FlowKey(1), 0, Span::from_ms(400));
        assert_eq!(delay(1, false, Time::ZERO), Span::from_ms(200));
        assert_eq!(delay(2, true, Time::ZERO), Span::from_ms(300), "another one's SYN, at which all is heard");
        assert_eq!(delay(1, false, Time::ZERO), Span::from_ms(200));
        assert_eq!(delay(1, true, Time::ZERO), Span::from_ms(400));
        // A SYN that is sent again.
        assert_eq!(delay(1, true, Time::ZERO), Span::from_ms(400));
        assert_eq!((flows.seen(), flows.drawn()), (3, 1));
    }

    #[test]
    fn what_was_announced_is_kept_until_the_connection_ends() {
        let ([announcer], announced) = announcers();
        let mut flows = flows_with(announced);
        announcer.connection(FlowKey(1), 0, Span::from_ms(200));
        announcer.connection(FlowKey(2), 0, Span::from_ms(300));
        announcer.connection(FlowKey(3), 0, Span::from_ms(400));
        announcer.connection(FlowKey(4), 0, Span::from_ms(500));
        let flow = flows.flow(FlowKey(2), true, Time::ZERO);
        flow.end(0, false);
        flow.end(1, false);
        flows.flow(FlowKey(3), true, Time::ZERO).end(0, true);
        flows.flow(FlowKey(4), true, Time::ZERO).end(0, false);
        crowd(&mut flows, LATER);
        crowd(&mut flows, LATER + Span::from_secs(60));
        assert_eq!(flows.flow(FlowKey(1), false, LATER).path.delay(), Span::from_ms(200));
        assert!(flows.flow(FlowKey(2), false, LATER).path.delay() <= Span::from_ms(75), "it was forgotten");
        assert!(flows.flow(FlowKey(3), false, LATER).path.delay() <= Span::from_ms(75), "it was reset");
        assert_eq!(flows.flow(FlowKey(4), false, LATER).path.delay(), Span::from_ms(500), "one side has ended");
    }

    #[test]
    fn all_busy_flows_are_remembered() {
        let mut flows = flows();
        let mut receive = |key, takes| flows.flow(FlowKey(key), false, Time::ZERO).path.receive(0, takes, Time::ZERO);
        for key in 0..100_000 {
            receive(key, Span::from_us(1000 + key % 8));
        }
        for key in 0..100_000 {
            assert_eq!(receive(key, Span::from_us(1000)).ns(), 1_000_000 * 2 + key % 8 * 1000);
        }
        assert_eq!(flows.seen(), 100_000);
    }
}
