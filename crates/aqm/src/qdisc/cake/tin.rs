//! A tin of CAKE has flows in queues of their own, which take turns by bytes, fairly between hosts as well. The turns
//! are those of [`super::super::fq_frame`] (DRR++), shortened by the number of flows that the flow's hosts keep busy.

use super::super::pool::Queue;
use super::super::rota::Rota;
use super::diffserv::Share;
use super::shaper::Pace;
use crate::law::cobalt::{Cobalt, Setting};
use base::{Rate, Span, Stream, Time};

/// How many queues a tin has, and how many hosts it tells apart.
pub const QUEUES: u32 = 1024;
/// How many places a flow may take: those of its set.
const WAYS: u32 = 8;
/// The place of a host that is not known.
const NOWHERE: u32 = u32::MAX;

/// Flows with packets that were empty a moment ago.
pub const NEW: u32 = 0;
/// Flows that wait for their turn.
pub const OLD: u32 = 1;
/// Empty flows whose law has something to remember.
pub const DECAYING: u32 = 2;

/// The state of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Set {
    /// It is not in use.
    #[default]
    None,
    /// It sends less than its share.
    Sparse,
    /// It used up its share and then ran empty. It counts as sparse, and waits among the bulk.
    SparseWait,
    /// It sends all that it may.
    Bulk,
    /// It is empty, and on [`DECAYING`].
    Decaying,
}

/// One flow's queue.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Its packets.
    pub queue: Queue,
    /// Its law.
    pub state: Cobalt,
    /// Bytes it may still send in this turn.
    pub deficit: i64,
    /// The state of the flow.
    pub set: Set,
    tag: u64,
    /// Its hosts, by their places.
    hosts: [u32; 2],
}

/// The flow and the hosts of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// The flow.
    pub flow: u64,
    /// The hosts it comes from and goes to; where they are not known each flow is between hosts of its own.
    pub hosts: Option<[u64; 2]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tag: u64,
    bulk_flows: u32,
}

/// A tin.
#[derive(Clone, Debug)]
pub struct Tin {
    /// Its flows.
    pub flows: Vec<Flow>,
    /// Its lists of flows.
    pub lists: Rota,
    /// What its laws are set to.
    pub setting: Setting,
    /// Flows that are sparse.
    pub sparse: u32,
    /// Flows that are bulk.
    pub bulk: u32,
    /// Bytes waiting.
    pub bytes: u64,
    /// Bytes it may still send in its turn among tins, where the link is not shaped.
    pub deficit: i64,
    /// What a turn among tins adds to `deficit`.
    pub quantum: i64,
    /// When it may send the next packet with its priority.
    pub next: Time,
    pace: Option<Pace>,
    flow_quantum: u32,
    hosts: [Vec<Host>; 2],
    /// Which hosts' flows are counted: source, destination.
    isolates: [bool; 2],
}

/// Bytes of a tin before the first packet: flows, their turns, hosts of both kinds.
pub const BYTES: usize =
    size_of::<Tin>() + (QUEUES as usize + 3) * (size_of::<Flow>() + 2 * size_of::<Host>() + size_of::<(u32, u32)>());

impl Tin {
    /// An empty tin with this share, whose laws are set to `fast` but for what a slow link needs, and which is fair
    /// among hosts of the kinds that `isolates` says: source, destination.
    pub fn new(share: Share, fast: Setting, mtu: u32, isolates: [bool; 2]) -> Self {
        let mut tin = Self {
            flows: vec![Flow::default(); QUEUES as usize],
            lists: Rota::new(QUEUES, 3),
            setting: fast,
            sparse: 0,
            bulk: 0,
            bytes: 0,
            deficit: 0,
            quantum: 0,
            next: Time::ZERO,
            pace: None,
            flow_quantum: 0,
            hosts: [vec![Host::default(); QUEUES as usize], vec![Host::default(); QUEUES as usize]],
            isolates,
        };
        tin.tune(share, fast, mtu);
        tin
    }

    /// Takes over another share and other settings of its laws, as for [`Tin::new`].
    pub fn tune(&mut self, share: Share, fast: Setting, mtu: u32) {
        let Setting { target, interval, .. } = fast;
        // A rate of less than 64 bytes a second would hold packets back for ever.
        let rate = share.rate_bytes.map(|bytes| Rate::from_bps(bytes.max(64) * 8));
        self.pace = rate.map(|rate| Pace::new(rate, fast.dialect.precision));
        self.flow_quantum = share.rate_bytes.map_or(1514, |bytes| (bytes >> 12).clamp(300, 1514) as u32);
        self.quantum = share.quantum;
        let mtu_time = self.pace.map_or(Span::ZERO, |pace| pace.time(mtu));
        // A target below one and a half packets could never be met.
        let target_here = target.max(mtu_time * 3 / 2);
        let interval = (interval + target_here.saturating_sub(target)).max(target_here * 2);
        self.setting = Setting { target: target_here, interval, mtu_time, ..fast };
    }

    /// Whether any flow waits for a turn.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The queue for a packet: its flow's own, as long as the set of eight has one left.
    pub fn find(&mut self, keys: Keys) -> u32 {
        let direct = (keys.flow % u64::from(QUEUES)) as u32;
        let flow = &self.flows[direct as usize];
        if flow.tag == keys.flow && flow.set != Set::None {
            return direct;
        }
        let by_tag = ways(direct).find(|&at| self.flows[at as usize].tag == keys.flow);
        let place = by_tag.or_else(|| ways(direct).find(|&at| self.flows[at as usize].set == Set::None));
        let place = place.unwrap_or(direct);
        let set = self.flows[place as usize].set;
        let is_known = by_tag.is_some() && set != Set::None;
        self.flows[place as usize].tag = keys.flow;
        if !is_known {
            // A new flow, or one that has to share a queue: the queue counts as its hosts' from now on.
            if set == Set::Bulk {
                self.count_bulk(place, false);
            }
            self.flows[place as usize].hosts =
                keys.hosts.map_or([NOWHERE; 2], |[from, to]| [self.host(0, from), self.host(1, to)]);
            if set == Set::Bulk {
                self.count_bulk(place, true);
            }
        }
        place
    }

    /// The place of a host, source or destination.
    fn host(&mut self, side: usize, key: u64) -> u32 {
        let hosts = &mut self.hosts[side];
        let direct = (key % u64::from(QUEUES)) as u32;
        let by_tag = ways(direct).find(|&at| hosts[at as usize].tag == key);
        let place = by_tag.or_else(|| ways(direct).find(|&at| hosts[at as usize].bulk_flows == 0)).unwrap_or(direct);
        hosts[place as usize].tag = key;
        place
    }

    fn count_bulk(&mut self, flow: u32, is_more: bool) {
        for side in [0, 1].into_iter().filter(|&side| self.isolates[side]) {
            if let Some(host) = self.hosts[side].get_mut(self.flows[flow as usize].hosts[side] as usize) {
                host.bulk_flows = if is_more { host.bulk_flows + 1 } else { host.bulk_flows - 1 };
            }
        }
    }

    /// The bytes of a turn: the quantum over the flows that the busier of the flow's hosts has, a fraction by chance.
    fn turn(&self, flow: u32, stream: &mut Stream) -> i64 {
        let load = self.load(flow);
        let (whole, rest) = (self.flow_quantum / load, self.flow_quantum % load);
        let is_more = crate::law::is_drawn(stream, f64::from(rest) / f64::from(load));
        i64::from(whole + u32::from(is_more))
    }

    fn load(&self, flow: u32) -> u32 {
        let hosts = self.flows[flow as usize].hosts;
        let host = |side: usize| self.hosts[side].get(hosts[side] as usize).filter(|_| self.isolates[side]);
        let of = |side: usize| host(side).map_or(0, |host| host.bulk_flows);
        of(0).max(of(1)).max(1)
    }

    /// Hears that a packet was put into a flow's queue.
    pub fn activate(&mut self, at: u32, stream: &mut Stream) {
        match self.flows[at as usize].set {
            Set::None | Set::Decaying => {
                self.flows[at as usize].set = Set::Sparse;
                self.flows[at as usize].deficit = self.turn(at, stream);
                self.sparse += 1;
                self.lists.push(NEW, at);
            }
            Set::SparseWait => self.promote(at),
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// Makes a sparse flow bulk.
    fn promote(&mut self, at: u32) {
        self.flows[at as usize].set = Set::Bulk;
        self.sparse -= 1;
        self.bulk += 1;
        self.count_bulk(at, true);
    }

    /// Lets the flow whose turn is over wait for the next.
    pub fn rotate(&mut self, at: u32, stream: &mut Stream) {
        if self.flows[at as usize].set == Set::Sparse {
            if self.flows[at as usize].queue.is_empty() {
                self.flows[at as usize].set = Set::SparseWait;
            } else {
                self.promote(at);
            }
        }
        let turn = self.turn(at, stream);
        self.flows[at as usize].deficit += turn;
        self.lists.push(OLD, at);
    }

    /// Hears that the flow was found empty at `now`.
    pub fn retire(&mut self, at: u32, now: Time) {
        let flow = &mut self.flows[at as usize];
        flow.state.empty(&self.setting, now);
        let is_at_rest = flow.state.is_at_rest(now);
        let set = std::mem::replace(&mut flow.set, if is_at_rest { Set::None } else { Set::Decaying });
        match set {
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Bulk => {
                self.bulk -= 1;
                self.count_bulk(at, false);
            }
            Set::None | Set::Decaying => {}
        }
        if is_at_rest {
            self.lists.remove(at);
        } else {
            self.lists.push(DECAYING, at);
        }
    }

    /// Charges `wire` bytes to the tin's own clock: it falls behind by one packet at most.
    pub fn charge(&mut self, wire: u32, now: Time) {
        let Some(pace) = self.pace else { return };
        let time = pace.time(wire);
        if self.next < now {
            self.next += time;
        } else {
            self.next = self.next.max(now + time);
        }
    }
}

/// The places of a set, from `direct` on around.
fn ways(direct: u32) -> impl Iterator<Item = u32> {
    let (first, start) = (direct - direct % WAYS, direct % WAYS);
    (0..WAYS).map(move |way| first + (start + way) % WAYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::cobalt;

    fn tin(rate_bps: Option<u64>) -> Tin {
        let share = Share { rate_bytes: rate_bps.map(|bps| bps / 8), quantum: 1024 };
        let (target, interval) = (Span::from_ms(5), Span::from_ms(100));
        let fast = Setting { target, interval, mtu_time: Span::ZERO, ecn_enabled: true, dialect: cobalt::PAPER };
        Tin::new(share, fast, 1514, [true, true])
    }

    #[test]
    fn slow_links_have_longer_targets_and_shorter_turns() {
        // 1 Mb/s: 1514 bytes take 12.112 ms, one and a half 18.168 ms; 100 + 18.168 - 5 ms.
        let slow = tin(Some(1_000_000));
        assert_eq!(slow.setting.target, Span::from_us(18_168));
        assert_eq!(slow.setting.interval, Span::from_us(113_168));
        assert_eq!(slow.flow_quantum, 300);
        let fast = tin(Some(100_000_000));
        assert_eq!((fast.setting.target, fast.setting.interval), (Span::from_ms(5), Span::from_ms(100)));
        assert_eq!((fast.flow_quantum, tin(None).flow_quantum), (1514, 1514));
    }

    #[test]
    fn flows_of_one_set_find_places_of_their_own() {
        let mut tin = tin(None);
        let keys = |n: u64| Keys { flow: 16 + n * u64::from(QUEUES), hosts: Some([n, n]) };
        let places: Vec<u32> = (0..9)
            .map(|n| {
                let at = tin.find(keys(n));
                tin.flows[at as usize].set = Set::Sparse;
                at
            })
            .collect();
        // Eight ways, and the ninth flow shares the queue that its hash says.
        assert_eq!(places, [16, 17, 18, 19, 20, 21, 22, 23, 16]);
        assert_eq!(tin.find(keys(3)), 19, "it is found again");
    }

    #[test]
    fn a_host_with_many_flows_has_short_turns() {
        let mut tin = tin(None);
        let mut stream = Stream::named(1, "tin");
        // Source 1 has three flows to one destination each, source 2 one.
        let at = [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 4)].map(|(flow, source, destination)| {
            let at = tin.find(Keys { flow, hosts: Some([source, destination]) });
            tin.activate(at, &mut stream);
            tin.promote(at);
            at
        });
        let mut mean = |at: u32| (0..3000).map(|_| tin.turn(at, &mut stream)).sum::<i64>() as f64 / 3000.0;
        // 1514 / 3, the fraction of 2/3 within five standard errors: 5 sqrt(2/9 / 3000).
        assert!((mean(at[0]) - 1514.0 / 3.0).abs() < 0.043);
        assert_eq!(mean(at[3]), 1514.0);
    }
}
