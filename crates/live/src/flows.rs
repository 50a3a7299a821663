//! What the router keeps of each flow: its propagation delay, and when its access links are free.
//!
//! A table of fixed hash with chains through a slab. A flow that has been silent for a while may be forgotten: its
//! delay comes from a random stream that is named by the flow, and so is the same when it comes back.

use base::{FlowKey, Rate, Span, Stream, Time};
use scenario::RttSpec;

/// The path of a flow, but for the bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Propagation delay one way.
    pub delay: Span,
    /// When each side's access link is free to send.
    sends_at: [Time; 2],
    /// When each side's access link is free to receive.
    receives_at: [Time; 2],
}

impl Path {
    /// When a packet of `size` bytes which `side` sends at `now` has left its access link.
    #[inline]
    pub fn send(&mut self, side: usize, size: u32, rate: Rate, now: Time) -> Time {
        serialize(&mut self.sends_at[side], size, rate, now)
    }

    /// When a packet of `size` bytes that left the bottleneck at `now` has crossed the access link of `side`.
    #[inline]
    pub fn receive(&mut self, side: usize, size: u32, rate: Rate, now: Time) -> Time {
        serialize(&mut self.receives_at[side], size, rate, now)
    }

    fn busy_until(&self) -> Time {
        self.sends_at.into_iter().chain(self.receives_at).max().expect("four of them")
    }
}

fn serialize(free_at: &mut Time, size: u32, rate: Rate, now: Time) -> Time {
    *free_at = (*free_at).max(now) + rate.time_for(u64::from(size));
    *free_at
}

struct Slot {
    key: FlowKey,
    next: u32,
    path: Path,
}

const NONE: u32 = u32::MAX;
/// How long a flow is remembered at least after its last packet.
const REMEMBERED: Span = Span::from_secs(10);

/// All flows that were seen lately.
pub struct Flows {
    /// Heads of chains; a power of two.
    heads: Vec<u32>,
    slots: Vec<Slot>,
    rtt: RttSpec,
    seed: u64,
    seen: u64,
}

impl Flows {
    /// No flow yet. Delays are drawn from `rtt`.
    pub fn new(rtt: RttSpec, seed: u64) -> Self {
        Self { heads: vec![NONE; 1 << 14], slots: Vec::with_capacity(1 << 14), rtt, seed, seen: 0 }
    }

    /// How many flows came that were not remembered.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The path of `key`, made if it is not known.
    #[inline]
    pub fn path(&mut self, key: FlowKey, now: Time) -> &mut Path {
        let mut at = self.heads[self.head(key)];
        while at != NONE && self.slots[at as usize].key != key {
            at = self.slots[at as usize].next;
        }
        if at == NONE {
            at = self.insert(key, now);
        }
        &mut self.slots[at as usize].path
    }

    fn head(&self, key: FlowKey) -> usize {
        key.hash(0) as usize & (self.heads.len() - 1)
    }

    fn insert(&mut self, key: FlowKey, now: Time) -> u32 {
        if self.slots.len() == self.heads.len() {
            self.make_room(now);
        }
        self.seen += 1;
        let path = Path { delay: self.rtt(key) / 2, sends_at: [now; 2], receives_at: [now; 2] };
        let head = self.head(key);
        let place = self.slots.len() as u32;
        self.slots.push(Slot { key, next: self.heads[head], path });
        self.heads[head] = place;
        place
    }

    /// The round-trip propagation delay of a flow. Where delays are to be spread evenly over a number of flows, that
    /// number is not known here: they are drawn uniformly.
    fn rtt(&self, key: FlowKey) -> Span {
        let quantile = Stream::named(self.seed, &format!("live/flow/{:016x}/rtt", key.0)).open_unit();
        Span::from_secs_f64(match &self.rtt {
            RttSpec::Drawn(distribution) => distribution.quantile(quantile),
            RttSpec::Even { low, high } => low + quantile * (high - low),
        })
    }

    /// Forgets flows that are silent; where that leaves more than half of the room taken, doubles it. A flow pays for
    /// this once or twice, whatever their number.
    fn make_room(&mut self, now: Time) {
        self.slots.retain(|slot| slot.path.busy_until() + REMEMBERED > now);
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
    use base::Distribution;

    fn flows() -> Flows {
        Flows::new(RttSpec::Drawn(Distribution::Uniform(0.010, 0.150)), 1)
    }

    #[test]
    fn delays_are_drawn_of_the_distribution() {
        let mut flows = flows();
        let n = 20_000_u64;
        let delays: Vec<f64> = (0..n).map(|k| flows.path(FlowKey(k), Time::ZERO).delay.secs_f64()).collect();
        assert!(delays.iter().all(|delay| (0.005..=0.075).contains(delay)));
        let mean = delays.iter().sum::<f64>() / n as f64;
        // Four standard errors of a uniform of width 70 ms.
        assert!((mean - 0.040).abs() < 4.0 * 0.070 / (12.0 * n as f64).sqrt(), "{mean}");
    }

    #[test]
    fn a_flow_that_was_forgotten_has_its_delay_again() {
        let mut flows = flows();
        let before = flows.path(FlowKey(7), Time::ZERO).delay;
        let later = Time::from_ns(60_000_000_000);
        for key in 100..100 + (1 << 14) {
            let _ = flows.path(FlowKey(key), later);
        }
        assert_eq!(flows.slots.len(), 1 << 14, "flow 7 has made room");
        assert_eq!(flows.path(FlowKey(7), later).delay, before);
        assert_eq!(flows.seen(), (1 << 14) + 2);
    }

    #[test]
    fn all_busy_flows_are_remembered() {
        let mut flows = flows();
        let rate = Rate::from_bps(8_000_000);
        for key in 0..100_000 {
            flows.path(FlowKey(key), Time::ZERO).send(0, 1000 + key as u32 % 8, rate, Time::ZERO);
        }
        for key in 0..100_000 {
            let left = flows.path(FlowKey(key), Time::ZERO).send(0, 1000, rate, Time::ZERO);
            assert_eq!(left.ns(), 1_000_000 * 2 + key % 8 * 1000);
        }
        assert_eq!(flows.seen(), 100_000);
    }
}
