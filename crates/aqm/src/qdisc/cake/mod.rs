//! CAKE is "common applications kept enhanced". Its shaper counts framing. Its tins take packets by codepoint, and each
//! has a priority up to a share of the rate. In a tin flows have queues of their own, which take turns, fairly among
//! hosts too. COBALT acts on each queue. At the limit the longest queue loses its head.
//!
//! Source: Hoeiland-Joergensen, Taht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home
//! Gateways", IEEE LANMAN 2018; tc-cake(8); Linux sch_cake.c for all details.
//!
//! | tc-cake(8) | here |
//! |---|---|
//! | `bandwidth`, `overhead`, `mpu`, `atm` `ptm` | [`shaper`] |
//! | `diffserv3` and kin | [`diffserv`] |
//! | `triple-isolate` and kin, `rtt` | [`tin`] |
//! | `ack-filter` | [`ack_filter`] |
//! | `memlimit` | `limit` |
//!
//! What the driver must supply, beyond size and flow: [`Packet::dscp`] for tins, and of the [headers](crate::Headers)
//! the hosts for fairness among these, acknowledgements for the filter. Without them all is best effort, each flow is
//! between hosts of its own, and nothing is filtered.
//!
//! The first number of the random stream perturbs the hash. Then COBALT's BLUE and the fractions of short turns draw.
//!
//! The forms in use are one algorithm, and differ in this and in what differs in COBALT ([`crate::law::cobalt`]):
//!
//! | what | `paper` | `linux` |
//! |---|---|---|
//! | the time of a byte | exact | 34 bits or a few less |
//! | what a packet leaves over of a nanosecond | counts for the next | is lost |
//!
//! Deviations. The limit counts packets or IP bytes, Linux the memory of its buffers. Which of equally long queues
//! loses is Linux's choice among queues that a hash, here another, has put into their places. Short turns have their
//! fraction by chance, and whole ones no chance, while Linux's are a byte short by chance. No `nat`, `wash`,
//! `autorate-ingress`, `fwmark`, and no segments to split. As without ECN, COBALT drops where `ecn` is off, which CAKE
//! has no word for.

pub mod ack_filter;
pub mod diffserv;
pub mod param;
pub mod shaper;
pub mod tin;

use super::fifo::Limit;
use super::heap::Heap;
use super::pool::Pool;
use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::cobalt::{self, Setting};
use crate::law::{Departure, Gauges, Verdict};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::Values;
use crate::registry::{Discipline, Row, SMALL_STATE, Site};
use ack_filter::AckFilter;
use base::{FlowKey, Rate, Span, Stream, Time, maths};
use diffserv::Diffserv;
use shaper::{Framing, Pace, Shaper};
use tin::{DECAYING, Keys, NEW, OLD, QUEUES, Tin};

/// Tins that Linux has room for: its choice among equally long queues depends on it.
const MOST_TINS: u32 = 8;

/// The discipline.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    limit: Limit,
    shaper: Option<Shaper>,
    framing: Framing,
    is_ingress: bool,
    ack_filter: AckFilter,
    diffserv: Diffserv,
    tins: Vec<Tin>,
    /// The tin whose turn it is on a link that is not shaped.
    current: usize,
    pool: Pool<P>,
    held: Backlog,
    keyed: Keyed,
    /// The queues of all tins that there could be, by their bytes. They are kept in order for a while after an
    /// overflow.
    longest: Heap<u64>,
    /// How many departures are left until an overflow is no longer recent.
    watched: u32,
    stream: Stream,
}

/// How keys are made of packets.
#[derive(Clone, Copy, Debug)]
struct Keyed {
    salt: u64,
    by_flow: bool,
    by_host: [bool; 2],
}

impl Keyed {
    fn keys<P: Packet>(self, packet: &P, hosts: Option<(u32, u32)>) -> Keys {
        let flow = packet.flow().hash(self.salt);
        let hosts = hosts.map(|(from, to)| [from, to].map(|host| FlowKey(u64::from(host)).hash(!self.salt)));
        if self.by_flow {
            return Keys { flow, hosts };
        }
        let part = |side: usize| if self.by_host[side] { hosts.map_or(flow, |hosts| hosts[side]) } else { 0 };
        // Mixed, so that a host that sends to itself is no other's equal.
        let both = if self.by_host == [false, false] { 0 } else { maths::mix64(part(0)) ^ part(1) };
        Keys { flow: both, hosts }
    }
}

/// What COBALT is set to on a link that is not slow.
fn setting(values: &Values) -> Setting {
    Setting {
        target: values.time("target"),
        interval: values.time("rtt"),
        mtu_time: Span::ZERO,
        ecn_enabled: values.flag("ecn"),
        dialect: cobalt::Dialect::of(values),
    }
}

impl<P: Packet> Cake<P> {
    /// Empty queues from resolved values.
    pub fn new(values: &Values, mut stream: Stream) -> Self {
        let (by_flow, by_host) = match values.word("isolation") {
            "dual-srchost" => (true, [true, false]),
            "dual-dsthost" => (true, [false, true]),
            "hosts" => (false, [true, true]),
            "flows" => (true, [false, false]),
            "srchost" => (false, [true, false]),
            "dsthost" => (false, [false, true]),
            "flowblind" => (false, [false, false]),
            _ => (true, [true, true]),
        };
        let bandwidth = values.find_rate("bandwidth");
        let diffserv = Diffserv::of(values.word("diffserv"));
        let isolates = if by_flow { by_host } else { [false, false] };
        let shares = diffserv.shares(bandwidth.map(|rate| rate.bps() / 8));
        let setting = setting(values);
        let tins: Vec<Tin> =
            shares.into_iter().map(|share| Tin::new(share, setting, values.size("mtu"), isolates)).collect();
        // All there could be, in the order in which Linux has them.
        let mut longest = Heap::new((QUEUES * MOST_TINS) as usize);
        (0..QUEUES * MOST_TINS).for_each(|item| longest.set(item, 0));
        Self {
            limit: Limit::of(values),
            shaper: bandwidth.map(|rate| Shaper::new(Pace::new(rate, setting.dialect.precision), Time::ZERO)),
            framing: Framing::new(values),
            is_ingress: values.flag("ingress"),
            ack_filter: AckFilter::of(values.word("ack_filter")),
            diffserv,
            current: 0,
            pool: Pool::default(),
            held: Backlog::default(),
            keyed: Keyed { salt: stream.bits(), by_flow, by_host },
            longest,
            watched: 0,
            tins,
            stream,
        }
    }

    fn charge(&mut self, tin: usize, size: u32, is_sent: bool, now: Time) -> u32 {
        let wire = self.framing.wire(size);
        if let Some(shaper) = &mut self.shaper {
            self.tins[tin].charge(wire, now);
            shaper.charge(wire, is_sent);
        }
        wire
    }

    /// Counts a packet that went out of a queue of `tin`.
    fn count_out(&mut self, tin: usize, size: u32) {
        self.held.packets -= 1;
        self.held.bytes -= u64::from(size);
        self.tins[tin].bytes -= u64::from(size);
    }

    /// Keeps queues in the order of their lengths.
    fn watch(&mut self, tin: usize, flow: u32) {
        if self.watched > 0 {
            let bytes = self.tins[tin].flows[flow as usize].queue.backlog().bytes;
            self.longest.set(flow * MOST_TINS + tin as u32, bytes);
        }
    }

    /// Has the longest queue lose its head.
    fn evict(&mut self, now: Time, tap: &mut dyn Tap<P>) {
        if self.watched == 0 {
            let tins = &self.tins;
            self.longest.rekey(|item| {
                let flow = |tin: &Tin| tin.flows[(item / MOST_TINS) as usize].queue.backlog().bytes;
                tins.get((item % MOST_TINS) as usize).map_or(0, flow)
            });
        }
        self.watched = 65_535;
        let (_, item) = self.longest.top().expect("there are queues");
        let (tin, at) = ((item % MOST_TINS) as usize, item / MOST_TINS);
        let Tin { flows, setting, .. } = &mut self.tins[tin];
        let flow = &mut flows[at as usize];
        let held = self.pool.pop(&mut flow.queue).expect("the longest queue holds a packet");
        flow.state.full(setting, now);
        let size = held.packet.size();
        self.count_out(tin, size);
        self.watch(tin, at);
        if self.is_ingress {
            self.charge(tin, size, false, now);
        }
        tap.dropped(held.packet, Cause::TAIL, now);
    }

    /// The tin to serve while packets wait: by its clock and priority on a shaped link, else by turns of bytes.
    fn choose(&mut self, now: Time) -> usize {
        assert!(self.tins.iter().any(Tin::is_busy), "a tin with packets is busy");
        if self.shaper.is_some() {
            // The last that is due, or else the earliest.
            let mut best: Option<(Time, usize)> = None;
            for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_busy()) {
                if tin.next <= now || best.is_none_or(|(next, _)| tin.next <= next) {
                    best = Some((tin.next, index));
                }
            }
            return best.expect("one of them is busy").1;
        }
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.is_busy() {
                return self.current;
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// The next packet of a flow that its law lets pass; on the way in, a loss ends the flow's turn at the tin.
    fn pull(&mut self, index: usize, at: u32, now: Time, tap: &mut dyn Tap<P>) -> Pulled<P> {
        let bulk = if self.is_ingress { self.tins[index].bulk } else { 0 };
        loop {
            let Some(Held { mut packet, enqueued }) = self.pool.pop(&mut self.tins[index].flows[at as usize].queue)
            else {
                self.tins[index].retire(at, now);
                return Pulled::Nothing;
            };
            let size = packet.size();
            self.count_out(index, size);
            self.watch(index, at);
            let Tin { flows, setting, .. } = &mut self.tins[index];
            let flow = &mut flows[at as usize];
            let (ecn, dscp, backlog) = (packet.ecn(), packet.dscp(), flow.queue.backlog());
            let departure = Departure { size, ecn, dscp, flow: packet.flow(), enqueued, backlog };
            match flow.state.decide(setting, &departure, bulk, &mut self.stream, now) {
                Verdict::Pass => return Pulled::Packet(Held { packet, enqueued }),
                Verdict::Mark(cause) => {
                    packet.mark();
                    tap.marked(&packet, cause, now);
                    return Pulled::Packet(Held { packet, enqueued });
                }
                Verdict::Drop(cause) => tap.dropped(packet, cause, now),
            }
            if self.is_ingress {
                self.spend(index, at, size, false, now);
                return Pulled::Lost;
            }
        }
    }

    /// Charges a packet to the shaper, the tin and the flow.
    fn spend(&mut self, tin: usize, flow: u32, size: u32, is_sent: bool, now: Time) {
        let wire = i64::from(self.charge(tin, size, is_sent, now));
        let tin = &mut self.tins[tin];
        tin.flows[flow as usize].deficit -= wire;
        tin.deficit -= wire;
    }

    /// One packet of the tin, or `None` when a flow was found empty: what to serve is then to be chosen again.
    fn serve(&mut self, index: usize, is_first: &mut bool, now: Time, tap: &mut dyn Tap<P>) -> Option<Held<P>> {
        loop {
            let tin = &mut self.tins[index];
            // Each departure looks after one decaying flow first.
            let decaying = if std::mem::replace(is_first, false) { tin.lists.first(DECAYING) } else { None };
            let at = decaying.or_else(|| tin.lists.first(NEW)).or_else(|| tin.lists.first(OLD))?;
            if tin.flows[at as usize].deficit <= 0 {
                tin.rotate(at, &mut self.stream);
                continue;
            }
            match self.pull(index, at, now, tap) {
                Pulled::Packet(held) => {
                    self.spend(index, at, held.packet.size(), true, now);
                    return Some(held);
                }
                Pulled::Nothing => return None,
                Pulled::Lost => {}
            }
        }
    }
}

/// What a flow gave.
enum Pulled<P> {
    Packet(Held<P>),
    Nothing,
    Lost,
}

impl<P: Packet> Qdisc<P> for Cake<P> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let index = self.diffserv.tin(packet.dscp());
        let at = self.tins[index].find(self.keyed.keys(&packet, driver.hosts(&packet)));
        let tin = &mut self.tins[index];
        if tin.bytes == 0 {
            tin.next = tin.next.max(now);
            if let Some(shaper) = self.shaper.as_mut().filter(|_| self.held.packets == 0) {
                shaper.wake(now);
            }
        }
        let superfluous = self.ack_filter.find(&self.pool, &tin.flows[at as usize].queue, &packet, &*driver);
        if let Some(before) = superfluous {
            let queue = &mut tin.flows[at as usize].queue;
            let older = self.pool.remove_after(queue, before).expect("the filter found it").packet;
            self.count_out(index, older.size());
            if self.is_ingress {
                self.charge(index, older.size(), false, now);
            }
            driver.dropped(older, Cause::FILTERED, now);
        }
        driver.accepted(&packet, now);
        let size = packet.size();
        self.held.packets += 1;
        self.held.bytes += u64::from(size);
        let tin = &mut self.tins[index];
        tin.bytes += u64::from(size);
        self.pool.push(&mut tin.flows[at as usize].queue, Held { packet, enqueued: now });
        tin.activate(at, &mut self.stream);
        self.watch(index, at);
        while !self.limit.holds(self.held) {
            self.evict(now, driver);
        }
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        let mut is_first = true;
        while self.held.packets > 0 {
            if let Some(shaper) = self.shaper.filter(|shaper| shaper.next() > now) {
                return Taken::Later(shaper.next());
            }
            let index = self.choose(now);
            if let Some(held) = self.serve(index, &mut is_first, now, tap) {
                self.watched = self.watched.saturating_sub(1);
                return Taken::Packet(held);
            }
        }
        Taken::Empty
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn gauges(&self) -> Gauges {
        let (sparse, bulk) = self.tins.iter().fold((0, 0), |sum, tin| (sum.0 + tin.sparse, sum.1 + tin.bulk));
        Gauges { probability: None, control: Some(f64::from(bulk)), tracked_flows: Some(sparse + bulk) }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, now: Time) {
        let (setting, bandwidth) = (setting(values), values.find_rate("bandwidth"));
        let shares = self.diffserv.shares(bandwidth.map(|rate| rate.bps() / 8));
        for (tin, share) in self.tins.iter_mut().zip(shares) {
            tin.tune(share, setting, values.size("mtu"));
        }
        self.shaper = bandwidth.map(|rate| {
            let pace = Pace::new(rate, setting.dialect.precision);
            self.shaper.map_or_else(|| Shaper::new(pace, now), |shaper| shaper.with_pace(pace))
        });
        self.limit = Limit::of(values);
        self.framing = Framing::new(values);
        self.is_ingress = values.flag("ingress");
        self.ack_filter = AckFilter::of(values.word("ack_filter"));
    }
}

/// The row of [`Cake`].
pub struct CakeRow;

impl Discipline for CakeRow {
    const ROW: Row = Row {
        name: "cake",
        aliases: &[],
        doc: "Shaper, tins by codepoint, fair queueing among flows and hosts, and COBALT, in one.",
        source: "Hoeiland-Joergensen, Taht and Morton 2018; tc-cake(8)",
        year: 2018,
        marks: true,
        params: param::PARAMS,
        fixed: &["dialect", "diffserv", "isolation", "rtt_keyword", "overhead_keyword"],
        gauges: &[
            Gauge::control("bulk_flows", "flows", "Flows that send all they may."),
            Gauge::flows("Flows that wait for a turn, sparse and bulk."),
        ],
        causes: &[],
        uses_rate: crate::registry::never,
        resolve: param::resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Cake::new(values, site.stream))
    }

    fn state_bytes(_values: &Values) -> usize {
        SMALL_STATE + 8 * tin::BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Value;
    use crate::{Egress, Headers};
    use base::{Ecn, Rate};

    #[derive(Clone, Copy, Debug)]
    struct Sent {
        dscp: u8,
        flow: u64,
        hosts: (u32, u32),
        size: u32,
    }

    impl Packet for Sent {
        fn size(&self) -> u32 {
            self.size
        }
        fn ecn(&self) -> Ecn {
            Ecn::Ect0
        }
        fn mark(&mut self) {}
        fn flow(&self) -> FlowKey {
            FlowKey(self.flow)
        }
        fn dscp(&self) -> u8 {
            self.dscp
        }
    }

    struct Deaf;

    impl<P> Tap<P> for Deaf {
        fn dropped(&mut self, _packet: P, _cause: Cause, _now: Time) {}
        fn marked(&mut self, _packet: &P, _cause: Cause, _now: Time) {}
    }

    impl Headers<Sent> for Deaf {
        fn hosts(&self, packet: &Sent) -> Option<(u32, u32)> {
            Some(packet.hosts)
        }
    }

    fn cake(bandwidth: Option<Rate>, diffserv: &'static str) -> Cake<Sent> {
        let mut values = Values::default();
        values.fill("ecn", Value::Flag(true));
        values.fill("diffserv", Value::Word(diffserv));
        values.fill("isolation", Value::Word("triple-isolate"));
        values.fill("rtt_keyword", Value::Word("internet"));
        values.fill("overhead_keyword", Value::Word("raw"));
        values.fill("ack_filter", Value::Word("off"));
        values.fill("ingress", Value::Flag(false));
        values.fill("dialect", Value::Word("paper"));
        values.fill("mtu", Value::Size(1514));
        if let Some(rate) = bandwidth {
            values.fill("bandwidth", Value::Rate(rate));
        }
        param::resolve(&mut values, Rate::from_bps(1_000_000_000)).expect("defaults fit");
        Cake::new(&values, Stream::named(1, "cake"))
    }

    /// Keeps `backlog` packets of each of `kinds` waiting for `seconds`; returns the packets delivered of each, by its
    /// place, with the times of the first thousand.
    fn saturate(cake: Cake<Sent>, link: Rate, kinds: &[Sent], backlog: usize, seconds: u64) -> (Vec<u64>, Vec<Time>) {
        let mut egress = Egress::new(link, Box::new(cake));
        for kind in kinds {
            (0..backlog).for_each(|_| egress.offer(*kind, Time::ZERO, &mut Deaf));
        }
        let (mut counts, mut times) = (vec![0; kinds.len()], vec![]);
        while egress.next_event() < Time::from_ns(seconds * 1_000_000_000) {
            let now = egress.next_event();
            while let Some(delivery) = egress.advance(now, &mut Deaf) {
                let kind = kinds.iter().position(|kind| kind.flow == delivery.packet.flow).expect("one of those");
                counts[kind] += 1;
                if times.len() < 1000 {
                    times.push(delivery.at);
                }
                egress.offer(delivery.packet, delivery.at, &mut Deaf);
            }
        }
        egress.assert_conserved();
        (counts, times)
    }

    #[test]
    fn the_shaper_sends_at_its_rate_without_bursts() {
        let kind = Sent { dscp: 0, flow: 1, hosts: (1, 1), size: 1250 };
        let cake = cake(Some(Rate::from_bps(10_000_000)), "besteffort");
        let (_, times) = saturate(cake, Rate::from_bps(100_000_000), &[kind], 4, 1);
        // One packet a ms; the link itself takes 100 us.
        for (number, at) in times.iter().enumerate() {
            assert_eq!(*at, Time::from_ns(100_000 + number as u64 * 1_000_000));
        }
        assert!(times.len() >= 999);
    }

    #[test]
    fn a_host_with_eight_flows_gets_no_more_than_one_with_one() {
        let host = |flow| if flow == 9 { 2 } else { 1 };
        let kinds: Vec<Sent> =
            (1..=9).map(|flow| Sent { dscp: 0, flow, hosts: (host(flow), host(flow)), size: 1000 }).collect();
        let (counts, _) = saturate(cake(None, "besteffort"), Rate::from_bps(100_000_000), &kinds, 50, 10);
        let eight: u64 = counts[..8].iter().sum();
        let total: u64 = counts.iter().sum();
        // 125,000 packets; rounds of about 1500 bytes a host, so that a share is off by a packet or two, and turns
        // shortened by chance, of a standard deviation of half a byte each.
        assert!(total >= 124_990);
        assert!((eight as f64 / total as f64 - 0.5).abs() < 0.001, "{counts:?}");
        let (least, most) = (counts[..8].iter().min().expect("eight"), counts[..8].iter().max().expect("eight"));
        assert!(most - least <= most / 100, "{counts:?}");
    }

    #[test]
    fn voice_is_first_up_to_its_share() {
        let kind = |dscp, flow| Sent { dscp, flow, hosts: (flow as u32, flow as u32), size: 1000 };
        // Expedited forwarding wants all, best effort too, and so does bulk.
        let kinds = [kind(46, 1), kind(0, 2), kind(8, 3)];
        let rate = Rate::from_bps(80_000_000);
        let (counts, _) = saturate(cake(Some(rate), "diffserv3"), Rate::from_bps(1_000_000_000), &kinds, 50, 10);
        let total: u64 = counts.iter().sum();
        let share = |n: usize| counts[n] as f64 / total as f64;
        assert!((share(0) - 0.25).abs() < 0.01, "{counts:?}");
        // Bulk, which outranks best effort until it has its sixteenth.
        assert!((share(2) - 0.0625).abs() < 0.01, "{counts:?}");
        // Alone with best effort and below its share, voice never waits behind it: see the vectors for flows.
        let sparse = Sent { size: 100, ..kind(46, 1) };
        let mut queue = cake(Some(rate), "diffserv3");
        (0..50).for_each(|_| queue.offer(kind(0, 2), Time::ZERO, &mut Deaf));
        queue.offer(sparse, Time::ZERO, &mut Deaf);
        assert_eq!(queue.take(Time::ZERO, &mut Deaf).packet().map(|held| held.packet.dscp), Some(46));
    }

    #[test]
    fn without_a_rate_tins_take_turns_by_weight() {
        let kind = |dscp, flow| Sent { dscp, flow, hosts: (flow as u32, flow as u32), size: 1000 };
        let kinds = [kind(0, 1), kind(8, 2), kind(46, 3)];
        let (counts, _) = saturate(cake(None, "diffserv3"), Rate::from_bps(80_000_000), &kinds, 50, 10);
        let total: u64 = counts.iter().sum();
        // 1024 : 64 : 256.
        for (count, weight) in counts.iter().zip([1024.0, 64.0, 256.0]) {
            assert!((*count as f64 / total as f64 - weight / 1344.0).abs() < 0.001, "{counts:?}");
        }
    }
}
