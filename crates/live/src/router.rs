//! The router reads packets from two devices, lets the network do what is due, hands over what has arrived, and waits.
//!
//! It is one loop in one thread. It reads until there is nothing more to read or a batch is full, then hands over what
//! is due. So a flood from one side delays the hand-over of the other side's packets by a batch at most. The time at
//! which a packet is read counts as its time of arrival.

use crate::clock::{Clock, Ready};
use crate::kernel_qdisc::{KernelLink, Passage};
use crate::lateness::{Budget, Lateness};
use crate::monitor::{Monitor, Seen, SeenWay};
use crate::network::{Leaving, Network};
use crate::news::News;
use crate::paths::Announced;
use crate::pool::BUFFER;
use crate::report::{Direction, Report};
use crate::tun::Tun;
use crate::urgency::{Class, Urgency, Waited};
use base::{Span, Time};
use record::{DropRow, ExchangeRow, QueueRow, Sink};
use scenario::{Link, Scenario};
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// Most packets read from one side in a row.
const BATCH: usize = 32;
/// The longest wait, after which the loop looks whether it shall stop.
const LOOKS_UP: Span = Span::from_ms(100);
/// How often the kernel is asked how long the thread waited for a processor.
const WAITS: Span = Span::from_secs(1);
/// How often the monitor's figures are written.
const SHOWS: Span = Span::from_ms(50);

/// How often the kernel's disciplines are asked for what they count.
const ASKS: Span = Span::from_ms(10);

/// The network of a scenario between two devices.
pub struct Router<C> {
    network: Network,
    /// The devices that it reads: the hosts' interfaces, left and right. Where links are the kernel's, the devices of
    /// each link follow, forward and in reverse.
    ports: Vec<Tun>,
    detour: Option<Detour>,
    clock: C,
    teller: Teller,
    lateness: Lateness,
    budget: Budget,
    written: [u64; 2],
    untaken: [u64; 2],
    /// When each host's port was last known to be empty. That is time zero at first, since hosts send nothing before
    /// it.
    emptied_at: [Time; 2],
    monitor: Arc<Monitor>,
    shows_at: Time,
    /// When to ask next how long the thread waited for a processor.
    waits_at: Time,
    /// How long it had waited when last asked.
    waited_before: Option<Waited>,
    class: Option<Class>,
    waited: Option<Waited>,
    /// When it stopped carrying packets; time zero before it has carried any.
    ended: Time,
}

impl<C: Clock> Router<C> {
    /// A router that has carried nothing. It hears of connections by `announced`, and sends rows to `news`. It never
    /// waits for that channel if no other thread has a sender of it.
    pub fn new(
        scenario: &Scenario,
        ports: [Tun; 2],
        clock: C,
        announced: Announced,
        news: Option<Sender<News>>,
    ) -> Self {
        let monitor = Arc::<Monitor>::default();
        Self {
            network: Network::new(scenario, announced),
            ports: Vec::from(ports),
            detour: None,
            clock,
            teller: Teller { news, monitor: Arc::clone(&monitor), told: 0, missed: 0 },
            lateness: Lateness::new(),
            budget: Budget::of(&scenario.live),
            written: [0; 2],
            untaken: [0; 2],
            emptied_at: [Time::ZERO; 2],
            monitor,
            shows_at: Time::ZERO,
            waits_at: Time::ZERO,
            waited_before: None,
            class: None,
            waited: None,
            ended: Time::ZERO,
        }
    }

    /// Lets packets go through the kernel's disciplines instead of ours. These stand on `links`, in the order of the
    /// scenario.
    pub fn through_kernel(&mut self, scenario: &Scenario, links: Vec<(KernelLink, [Tun; 2])>) {
        let passages =
            |link: &Link| [0, 1].map(|way| Passage::new(link.qdiscs[way].kind(), link.rates[way], link.overhead));
        self.network.through_kernel(scenario.links.iter().flat_map(passages).collect());
        let (links, devices): (Vec<_>, Vec<_>) = links.into_iter().unzip();
        self.ports.extend(devices.into_iter().flatten());
        let names = scenario.links.iter().map(|link| link.name.clone()).collect();
        self.detour = Some(Detour { links, names, asks_at: Time::ZERO, packet: vec![0; BUFFER] });
    }

    /// The report on the kernel's disciplines: how they were set up, what they say, and what became of packets on the
    /// way to them and from them. `None` where the disciplines are ours.
    pub fn kernel(&self) -> Option<Value> {
        let passages = self.network.passages()?;
        let detour = self.detour.as_ref()?;
        let mut each = detour.links.iter().zip(passages.chunks_exact(2)).map(|(link, ways)| {
            let mut said = link.readback();
            said["missing"] = ways.iter().map(Passage::missing).collect();
            said["unknown"] = ways.iter().map(Passage::unknown).collect();
            said["past"] = ways.iter().map(Passage::past).collect();
            said
        });
        if detour.links.len() == 1 {
            return each.next();
        }
        let links: Map<String, Value> = detour.names.iter().cloned().zip(each).collect();
        Some(json!({ "links": links }))
    }

    /// What the router shows of itself while it runs.
    pub fn monitor(&self) -> Arc<Monitor> {
        Arc::clone(&self.monitor)
    }

    /// The network, to be set up before the run.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Carries packets until the clock says `until`, or somebody wants it to `stop`.
    ///
    /// # Errors
    /// When a device goes, or the system cannot wait. What was counted until then is in [`Router::report`].
    pub fn run(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        // In virtual time everybody is quick enough.
        let urgency = C::PASSES.then(Urgency::raise);
        self.class = urgency.as_ref().map(Urgency::class);
        let waited = Waited::now();
        let carried = self.carry(until, stop);
        if carried.is_err() {
            self.ended = self.clock.now().min(until);
        }
        self.note_waits(until);
        self.waited = Waited::now().zip(waited).map(|(after, before)| after.since(before));
        carried
    }

    fn carry(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        let mut now = self.clock.now();
        let mut ready = Ready::ALL;
        while now < until && !stop.load(Ordering::Relaxed) {
            let began = now;
            for side in 0..2 {
                if ready.has(side) {
                    self.read(side, &mut now)?;
                } else {
                    self.emptied_at[side] = began;
                }
            }
            if self.detour.is_some() {
                self.leave_kernel(ready, &mut now)?;
            }
            self.hand_over(&mut now)?;
            if now >= self.shows_at {
                self.show(now);
                self.shows_at = now + SHOWS;
            }
            if now >= self.waits_at {
                self.note_waits(now);
            }
            let due = self.network.due(C::SLACK).min(until).min(now + LOOKS_UP).min(self.asks_at());
            let worked = self.refresh(now);
            self.lateness.away(worked.since(began));
            ready = self.clock.wait(worked, due, &self.ports)?;
            now = self.clock.now();
            // A wait that ends with an instant rather than a packet was too long by the time since that instant. The
            // ports were empty while it slept, if a packet would have woken it.
            self.lateness.away(now.since(due.max(worked)));
            if ready.is_watched() {
                let slept = now.min(due).since(worked);
                self.emptied_at.iter_mut().for_each(|at| *at += slept);
            }
        }
        // Packets that were due by the end belong to the run, even if somebody stopped it.
        self.ended = now.min(until);
        self.hand_over_until(self.ended, &mut now)?;
        if let Some(detour) = &mut self.detour {
            detour.asks_at = now;
            self.leave_kernel(Ready::ALL, &mut now)?;
        }
        // Rows and the window end here, unless they have ended.
        self.network.cut(self.ended, &mut self.teller);
        self.show(now);
        Ok(())
    }

    /// Notes how long the thread waited for a processor since the last time.
    #[cold]
    fn note_waits(&mut self, now: Time) {
        self.waits_at = now + WAITS;
        // In virtual time there is a processor for everybody.
        if let Some(after) = C::PASSES.then(Waited::now).flatten()
            && let Some(before) = self.waited_before.replace(after)
        {
            self.lateness.waited(after.since(before));
        }
    }

    /// The time now, where `now` may be over.
    #[inline]
    fn refresh(&self, now: Time) -> Time {
        // Virtual time stands still while anybody works, and looking at it costs much.
        if C::PASSES { self.clock.now() } else { now }
    }

    /// Reads what `side` has sent.
    fn read(&mut self, side: usize, now: &mut Time) -> io::Result<()> {
        for count in 0..BATCH {
            let Some(place) = self.network.take() else {
                // The packet is read and dropped. If it stayed outside, it would arrive later than it was sent.
                if self.ports[side].read(&mut [0])?.is_none() {
                    return Ok(());
                }
                self.network.no_room(side);
                continue;
            };
            let read = self.ports[side].read(self.network.buffer(place));
            *now = self.refresh(*now);
            let Ok(Some(size)) = read else {
                self.network.untake(place);
                self.emptied_at[side] = *now;
                return read.map(drop);
            };
            if count == 0 {
                self.lateness.unread(now.since(self.emptied_at[side]));
            }
            // Malformed packets are counted by the network, and nobody's concern here.
            let _ = self.network.arrive(place, size, side, *now);
        }
        Ok(())
    }

    /// Hands over what has arrived by now.
    fn hand_over(&mut self, now: &mut Time) -> io::Result<()> {
        *now = self.refresh(*now);
        self.hand_over_until(*now, now)
    }

    /// Hands over what has arrived by `due`.
    fn hand_over_until(&mut self, due: Time, now: &mut Time) -> io::Result<()> {
        while let Some(leaving) = self.network.advance(due, &mut self.teller) {
            *now = self.refresh(*now);
            self.write(leaving, *now)?;
        }
        Ok(())
    }

    /// When the kernel's disciplines are to be asked next for what they count.
    #[inline]
    fn asks_at(&self) -> Time {
        self.detour.as_ref().map_or(Time::NEVER, |detour| detour.asks_at)
    }

    /// Reads packets that the kernel's disciplines have let go of, and now and then asks for their counts.
    fn leave_kernel(&mut self, ready: Ready, now: &mut Time) -> io::Result<()> {
        let Some(detour) = &mut self.detour else { return Ok(()) };
        for port in (0..2 * detour.links.len()).filter(|port| ready.has(2 + port)) {
            while let Some(size) = self.ports[2 + port].read(&mut detour.packet)? {
                if C::PASSES {
                    *now = self.clock.now();
                }
                self.network.leave_kernel(&detour.packet[..size], port, *now, &mut self.teller);
            }
        }
        if *now >= detour.asks_at {
            for port in 0..2 * detour.links.len() {
                let said = detour.links[port / 2].statistics(port % 2)?;
                self.network.tell(said, port, *now, &mut self.teller);
            }
            // Whole multiples, so that intervals of rows end when it has just been asked.
            detour.asks_at = Time::from_ns((now.ns() / ASKS.ns() + 1) * ASKS.ns());
        }
        Ok(())
    }

    /// Hands a packet that is due at a link to the kernel, by the device of the link's other direction.
    fn enter_kernel(&mut self, leaving: Leaving, now: Time) -> io::Result<()> {
        self.lateness.packet(now.since(leaving.at));
        // A packet that the kernel does not take is lost, and is found missing when the kernel is asked.
        let other = self.network.port_of(&leaving) ^ 1;
        self.ports[2 + other].write(&self.network.bytes_for_kernel(&leaving))?;
        self.network.enter_kernel(leaving, now);
        Ok(())
    }

    #[inline]
    fn write(&mut self, leaving: Leaving, now: Time) -> io::Result<()> {
        if leaving.is_for_kernel {
            return self.enter_kernel(leaving, now);
        }
        let late = now.since(leaving.at);
        let from = 1 - leaving.side;
        let taken = self.ports[leaving.side].write(self.network.bytes(&leaving));
        let is_taken = matches!(taken, Ok(true));
        let size = self.network.wire_size(&leaving);
        self.lateness.packet(late);
        self.lateness.pace_mut(from).packet(size, leaving.behind, late, is_taken);
        self.network.give_back(leaving);
        *if is_taken { &mut self.written[from] } else { &mut self.untaken[from] } += 1;
        taken.map(drop)
    }

    #[cold]
    fn show(&self, now: Time) {
        let way = |side: usize| {
            let counts = self.network.counts(side);
            let (delivered_bytes, queue_delay) = self.network.sent(side);
            SeenWay {
                delivered: counts.delivered,
                delivered_bytes,
                dropped: counts.dropped_total(),
                marked: counts.marked_total(),
                queue_packets: self.network.waiting(side),
                queue_delay,
            }
        };
        self.monitor.write(&Seen {
            at: now,
            ways: [way(0), way(1)],
            flows: self.network.flows(),
            packets: self.lateness.packets(),
            late_p99: self.lateness.quantile(0.99),
            late_most: self.lateness.most(),
            stalls: self.lateness.stalls(),
            longest: self.lateness.longest(),
        });
    }

    /// What happened until it ended. Asserts that packets were conserved.
    pub fn report(&self) -> Report {
        let ended = self.ended;
        self.network.assert_conserved();
        let measured = self.network.measured(ended);
        let direction = |side: usize| {
            let direction = Direction::new(&self.network, side, self.written[side], self.untaken[side], measured);
            direction.assert_conserved();
            direction
        };
        let mut lateness = self.lateness.clone();
        // The kernel's links have clocks of their own. Of several the one that is furthest from its rate is judged.
        if let Some(passages) = self.network.passages() {
            for way in 0..2 {
                let furthest =
                    passages.iter().skip(way).step_by(2).map(Passage::pace).max_by(|a, b| a.by_how_far_off(b));
                *lateness.pace_mut(way) = furthest.expect("there is a link").clone();
            }
        }
        Report {
            clock: C::NAME,
            ended,
            measured,
            directions: [direction(0), direction(1)],
            meters: self.network.meters(),
            crossings: self.network.crossings(),
            flows: self.network.flows(),
            flows_drawn: self.network.flows_drawn(),
            lateness,
            budget: self.budget,
            class: self.class,
            waited: self.waited,
            drops_missed: self.teller.missed,
        }
    }
}

/// The detour of packets through the kernel's disciplines.
struct Detour {
    links: Vec<KernelLink>,
    /// The names of the links.
    names: Vec<String>,
    /// When to ask next for what they count.
    asks_at: Time,
    /// The buffer for packets that they let go of.
    packet: Vec<u8>,
}

/// Sends rows to the collector, or nowhere if nobody wants them or the collector has gone.
struct Teller {
    news: Option<Sender<News>>,
    monitor: Arc<Monitor>,
    /// Losses and marks that were sent.
    told: u64,
    /// Losses and marks that were not, because too many before them waited to be written.
    missed: u64,
}

/// The most losses and marks that are sent and not written yet: 100 MB of them, some seconds of more than any disk
/// takes.
const MOST_UNDER_WAY: u64 = 1 << 20;

impl Teller {
    fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            let _ = sender.send(news);
        }
    }
}

impl Sink for Teller {
    fn exchange(&mut self, row: &ExchangeRow) {
        self.tell(News::Exchange(*row));
    }
    fn queue(&mut self, row: &QueueRow) {
        self.tell(News::Queue(*row));
    }
    fn drop(&mut self, row: &DropRow) {
        if self.news.is_none() {
            return;
        }
        if self.told - self.monitor.taken().min(self.told) >= MOST_UNDER_WAY {
            self.missed += 1;
            return;
        }
        self.told += 1;
        self.tell(News::Drop(*row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn losses_are_told_as_long_as_somebody_takes_them() {
        let (sender, receiver) = channel();
        let monitor = Arc::<Monitor>::default();
        // As if all but one of those that may be under way had been told.
        let told = MOST_UNDER_WAY - 1;
        let mut teller = Teller { news: Some(sender), monitor: Arc::clone(&monitor), told, missed: 0 };
        let row = DropRow {
            time: Time::ZERO,
            link: 0,
            direction: 0,
            is_mark: false,
            cause: aqm::Cause::EARLY,
            size_bytes: 1500,
            flow: 1,
        };
        (0..3).for_each(|_| teller.drop(&row));
        assert_eq!((receiver.try_iter().count(), teller.missed), (1, 2));
        monitor.took(1);
        teller.drop(&row);
        assert_eq!((receiver.try_iter().count(), teller.missed), (1, 2));
    }
}
