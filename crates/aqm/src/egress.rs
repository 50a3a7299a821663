//! The egress of a link is its rate, its discipline and its serializer. The simulator and the live router drive this
//! same object.
//!
//! It advances by its own event times. Ticks of the law and ends of transmissions happen when they are due, however
//! late the driver calls, so that a late driver does not change what the link does. A packet leaves the discipline when
//! its transmission starts, and is delivered when its last bit has left.
//!
//! If a trace stands for the rate, packets pass at its opportunities. A transmission starts at the first opportunity
//! that the packet has a part of. A packet that arrives at the very instant of an opportunity has come too late for it.
//!
//! If the rate changes ([`Egress::with_changes`]), a transmission ends at the rate at which it began, and none begins
//! during an outage. A change comes before all else that happens at its instant.
//!
//! If the interface has a queue of its own ([`Egress::with_device_queue`]), a packet leaves the discipline when it
//! moves there, and waits on until its transmission starts.

use crate::cause::Cause;
use crate::changes::Changes;
use crate::device::DeviceQueue;
use crate::framing::Framing;
use crate::gauge::Gauges;
use crate::line::{Due, Line};
use crate::packet::{Ack, Backlog, Driver, Headers, Packet, Tap};
use crate::param::Values;
use crate::qdisc::fifo::Limit;
use crate::qdisc::{Qdisc, Taken};
use crate::server::Server;
use crate::trace::Trace;
use base::{Rate, Span, Time};

/// Counts what went through an egress since it was made. `offered = delivered + dropped + held` holds at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets offered.
    pub offered: u64,
    /// Packets whose last bit has left.
    pub delivered: u64,
    /// Packets lost, by [`Cause`].
    pub dropped: [u64; Cause::ALL.len()],
    /// Packets marked, by [`Cause`].
    pub marked: [u64; Cause::ALL.len()],
}

impl Counts {
    /// Adds what went through another.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        let each = |sums: &mut [u64], more: &[u64]| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        each(&mut self.dropped, &other.dropped);
        each(&mut self.marked, &other.marked);
    }

    /// Packets lost, whatever the cause.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets marked, whatever the cause.
    pub fn marked_total(&self) -> u64 {
        self.marked.iter().sum()
    }
}

/// What came out of an egress.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<P> {
    /// The packet.
    pub packet: P,
    /// When its last bit left.
    pub at: Time,
    /// How long it waited, in discipline and device queue: from acceptance to the start of its transmission.
    pub waited: Span,
}

/// A link's sending end.
pub struct Egress<P> {
    qdisc: Box<dyn Qdisc<P> + Send>,
    line: Line<P>,
    /// What stands between the discipline and the wire; `None` on a plain link.
    between: Option<Box<Between<P>>>,
}

/// What stands between the discipline and the wire, on a link that is not plain.
struct Between<P> {
    server: Server,
    /// The queue of the interface, if it has one. It holds the packet in transmission too.
    device: Option<DeviceQueue<P>>,
    /// The parameters of the discipline, if it is told the rate when that changes.
    told: Option<Values>,
}

impl<P: Packet> Egress<P> {
    /// An idle link of `rate` behind `qdisc`.
    pub fn new(rate: Rate, qdisc: Box<dyn Qdisc<P> + Send>) -> Self {
        let line = Line::new(rate, qdisc.next_tick());
        Self { qdisc, line, between: None }
    }

    /// An idle link that delivers at the opportunities of `trace` behind `qdisc`.
    pub fn traced(trace: Trace, qdisc: Box<dyn Qdisc<P> + Send>) -> Self {
        let mut egress = Self::new(trace.rate(), qdisc);
        egress.between().server = Server::traced(trace);
        egress
    }

    /// Lets this idle link change. Until the first change its rate is as it is.
    ///
    /// # Panics
    /// If a trace stands for the rate.
    #[must_use]
    pub fn with_changes(mut self, changes: Changes) -> Self {
        let server = &mut self.between().server;
        assert!(matches!(server, Server::Constant), "a rate is that of a trace, or changes");
        *server = Server::changing(changes);
        let changes_at = server.next_change();
        self.line.next_tick = self.line.next_tick.min(changes_at);
        self
    }

    /// Has the discipline told the rate when that changes. Its parameters stay `values`, even those that were computed
    /// from the rate of the start.
    #[must_use]
    pub fn telling_rate(mut self, values: Values) -> Self {
        self.between().told = Some(values);
        self
    }

    fn between(&mut self) -> &mut Between<P> {
        self.between.get_or_insert_with(|| Box::new(Between { server: Server::Constant, device: None, told: None }))
    }

    /// Has each packet take what its framing says of the link.
    #[must_use]
    pub fn with_framing(mut self, framing: Framing) -> Self {
        self.line.framing = framing;
        self
    }

    /// Gives the interface of this idle link a queue of its own. A driver takes packets from the discipline while fewer
    /// than `limit` packets are in there, or no more than `limit` bytes. The packet in transmission counts.
    ///
    /// # Panics
    /// If `limit` is 0 packets, because nothing could ever be sent.
    #[must_use]
    pub fn with_device_queue(mut self, limit: Limit) -> Self {
        assert!(limit != Limit::Packets(0), "a device queue has room for a packet");
        self.between().device = Some(DeviceQueue::new(limit));
        self
    }

    /// When a call of [`Egress::advance`] is due next: at the end of a transmission or a tick of the law.
    #[inline]
    pub fn next_event(&self) -> Time {
        self.line.done_at.min(self.line.next_tick)
    }

    /// Takes a packet that arrives at `now`. Everything due before must have been advanced past.
    ///
    /// # Panics
    /// If the packet is out of order: something was due before `now`, or has happened after it.
    #[inline]
    pub fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        self.reach(now);
        let Line { counts, is_losing, .. } = &mut self.line;
        counts.offered += 1;
        self.qdisc.offer(packet, now, &mut Counting { counts, is_losing, tells_all: true, tap: &mut *driver });
        if self.line.sending.is_none() {
            self.start(now, driver);
        }
        self.line.standing.set(self.qdisc.backlog().packets, now);
    }

    /// Moves time on to `now`. Checked here, time runs forwards for all that follows, and no packet leaves before it
    /// came.
    #[inline]
    fn reach(&mut self, now: Time) {
        if now < self.line.latest || now > self.next_event() {
            out_of_order(now, self.line.latest, self.next_event());
        }
        self.line.latest = now;
    }

    /// Does the next thing that is due at or before `now`; call until it returns `None` and [`Egress::next_event`]
    /// is later than `now`. Ticks come before deliveries of the same instant.
    #[inline]
    pub fn advance(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Option<Delivery<P>> {
        while self.line.next_tick <= now && self.line.next_tick <= self.line.done_at {
            self.tick();
        }
        if self.line.done_at > now {
            return None;
        }
        let at = self.line.done_at;
        self.line.latest = at;
        let mut delivery = self.line.leave();
        if delivery.is_none() && self.between.is_some() {
            delivery = self.leave_device();
        }
        self.start(at, tap);
        self.line.standing.set(self.qdisc.backlog().packets, at);
        delivery
    }

    /// Does everything that happens before `before`, while `arrivals` come in their order and nothing else does. It
    /// comes to the same as [`Egress::offer`] and [`Egress::advance`] one by one. Packets that leave are put into
    /// `out`. Returns how many of the arrivals came. Of packets that are accepted in a row, `driver` hears only of the
    /// first after a loss.
    ///
    /// # Panics
    /// As [`Egress::offer`].
    pub fn pass(
        &mut self,
        arrivals: &[Due<P>],
        before: Time,
        out: &mut Vec<Delivery<P>>,
        driver: &mut dyn Driver<P>,
    ) -> usize
    where
        P: Copy,
    {
        if self.between.is_none() {
            return self.qdisc.serve(&mut self.line, arrivals, before, out, driver);
        }
        let mut came = 0;
        loop {
            let due = self.next_event();
            let next = arrivals.get(came).filter(|next| next.at < due.min(before));
            match next {
                Some(&Due { at, packet, .. }) => self.offer(packet, at, driver),
                None if due < before => out.extend(self.advance(due, driver)),
                None => return came,
            }
            came += usize::from(next.is_some());
        }
    }

    /// Does what is due at `next_tick`.
    fn tick(&mut self) {
        let at = self.line.next_tick;
        self.line.latest = at;
        let mut change_at = Time::NEVER;
        if let Some(Between { server, told, .. }) = self.between.as_deref_mut() {
            let is_change = server.next_change() == at;
            if is_change {
                server.change(&mut self.line.wire);
                if let Some(values) = told {
                    self.qdisc.retune(values, values.rate_at(self.line.wire.rate()), at);
                }
            }
            change_at = server.next_change();
            assert!(change_at > at, "a change moves on");
            if is_change && self.qdisc.next_tick() > at {
                self.line.next_tick = self.qdisc.next_tick().min(change_at);
                return;
            }
        }
        self.qdisc.tick(at);
        self.line.ticks += 1;
        let next = self.qdisc.next_tick();
        assert!(next > at, "a tick moves on");
        self.line.next_tick = next.min(change_at);
    }

    /// Takes the next packet from the discipline and begins to send it.
    #[inline(always)]
    fn start(&mut self, now: Time, tap: &mut dyn Tap<P>) {
        if self.between.is_some() {
            return self.start_otherwise(now, tap);
        }
        self.line.start(&mut *self.qdisc, now, tap);
    }

    /// Begins to send on a link that is not plain.
    #[cold]
    #[inline(never)]
    fn start_otherwise(&mut self, now: Time, tap: &mut dyn Tap<P>) {
        match self.between.as_deref() {
            Some(Between { device: Some(_), .. }) => self.fill_device(now, tap),
            _ => self.start_when_ready(now, tap),
        }
    }

    /// Takes the next packet from the discipline and begins to send it once the server is ready.
    fn start_when_ready(&mut self, now: Time, tap: &mut dyn Tap<P>) {
        let Some(Between { server, .. }) = self.between.as_deref_mut() else { return };
        // What was due at this instant may use what passes now.
        let ready = server.ready(now, self.line.done_at == now);
        if ready > now && self.qdisc.backlog().packets > 0 {
            self.line.done_at = ready;
            return;
        }
        match self.qdisc.take(
            now,
            &mut Counting { counts: &mut self.line.counts, is_losing: &mut self.line.is_losing, tells_all: true, tap },
        ) {
            Taken::Packet(held) => {
                self.line.waited = ready.since(held.enqueued);
                self.line.done_at = server.send(self.line.framing.wire(held.packet.size()), ready, &mut self.line.wire);
                self.line.sending = Some(held);
            }
            Taken::Later(ready) => self.line.done_at = later(ready, now),
            // The discipline is asked in vain, as on any link.
            Taken::Empty => self.line.done_at = Time::NEVER,
        }
    }

    /// Moves packets from the discipline into the device queue while that has room, and keeps the wire busy.
    fn fill_device(&mut self, now: Time, tap: &mut dyn Tap<P>) {
        let Some(Between { server, device: Some(device), .. }) = self.between.as_deref_mut() else { return };
        let is_due = self.line.done_at == now;
        let Line { counts, is_losing, .. } = &mut self.line;
        let mut tap = Counting { counts, is_losing, tells_all: true, tap };
        let mut ready = Time::NEVER;
        while device.has_room() {
            // A driver learns that there is nothing by asking, and so the discipline that it was asked in vain.
            match self.qdisc.take(now, &mut tap) {
                Taken::Packet(held) => device.push(held),
                Taken::Later(at) => {
                    ready = later(at, now);
                    break;
                }
                Taken::Empty => break,
            }
        }
        if device.waits() {
            let serves_at = server.ready(now, is_due);
            if serves_at > now {
                self.line.done_at = serves_at.min(ready);
                return;
            }
            device.transmit(now, |size| server.send(self.line.framing.wire(size), now, &mut self.line.wire));
        }
        self.line.done_at = device.done_at().min(ready);
    }

    /// The packet that leaves the device queue at `done_at`.
    #[cold]
    #[inline(never)]
    fn leave_device(&mut self) -> Option<Delivery<P>> {
        let Some(Between { device: Some(device), .. }) = self.between.as_deref_mut() else { return None };
        let (packet, waited) = device.leaves(self.line.done_at)?;
        self.line.counts.delivered += 1;
        Some(Delivery { packet, at: self.line.done_at, waited })
    }

    /// The packet in transmission, and when its last bit will have left.
    #[inline]
    pub fn sending(&self) -> Option<(&P, Time)> {
        match self.between.as_deref() {
            Some(Between { device: Some(device), .. }) => device.sending().map(|packet| (packet, device.done_at())),
            _ => self.line.sending.as_ref().map(|held| (&held.packet, self.line.done_at)),
        }
    }

    /// What waits in the discipline; neither the packet in transmission nor what a device queue holds is counted.
    pub fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    /// Packets that waited in the discipline, summed over the time until `now`: packets x ns.
    pub fn waiting_packet_ns(&self, now: Time) -> u128 {
        self.line.standing.packet_ns(now)
    }

    /// What the device queue holds, with the packet in transmission; nothing if there is no device queue.
    pub fn device_backlog(&self) -> Backlog {
        match self.between.as_deref() {
            Some(Between { device: Some(device), .. }) => device.backlog(),
            _ => Backlog::default(),
        }
    }

    /// The discipline's control variables.
    pub fn gauges(&self) -> Gauges {
        self.qdisc.gauges()
    }

    /// Gives the discipline other parameters and another rate of the link from `now` on, by [`Qdisc::retune`].
    /// Everything due before must have been advanced past. The link itself stays as it is.
    ///
    /// # Panics
    /// As [`Egress::offer`].
    pub fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.reach(now);
        self.qdisc.retune(values, values.rate_at(rate), now);
        if let Some(Between { told: Some(told), .. }) = self.between.as_deref_mut() {
            told.clone_from(values);
        }
        let changes_at = self.between.as_deref().map_or(Time::NEVER, |between| between.server.next_change());
        self.line.next_tick = self.qdisc.next_tick().min(changes_at);
    }

    /// What went through so far.
    pub fn counts(&self) -> &Counts {
        &self.line.counts
    }

    /// Ticks of the law so far.
    pub fn ticks(&self) -> u64 {
        self.line.ticks
    }

    /// The present rate of the link; the mean rate of a trace.
    pub fn rate(&self) -> Rate {
        self.line.wire.rate()
    }

    /// Asserts that no packet was made up, or lost without being counted.
    pub fn assert_conserved(&self) {
        let in_device = u64::from(self.device_backlog().packets);
        let held = u64::from(self.qdisc.backlog().packets) + in_device + u64::from(self.line.sending.is_some());
        let Counts { offered, delivered, .. } = self.line.counts;
        let dropped = self.line.counts.dropped_total();
        assert!(
            offered == delivered + dropped + held,
            "packets are conserved: offered {offered} = delivered {delivered} + dropped {dropped} + held {held}"
        );
    }
}

/// Panics because something comes at `now`, though something has happened later, at `latest`, or is `due` before.
#[cold]
#[inline(never)]
pub(crate) fn out_of_order(now: Time, latest: Time, due: Time) -> ! {
    assert!(now >= latest, "time runs forwards: {now:?} comes after {latest:?}");
    panic!("what is due comes first: {due:?} before {now:?}");
}

/// When a shaper that gives nothing at `now` wants to be asked again, or a law to tick.
#[inline]
pub(crate) fn later(next: Time, now: Time) -> Time {
    assert!(next > now, "what gives nothing now gives something later, and a tick moves on");
    next
}

/// Counts what the discipline tells on its way to the driver's tap.
pub(crate) struct Counting<'a, T: ?Sized> {
    pub(crate) counts: &'a mut Counts,
    /// The last packet was lost.
    pub(crate) is_losing: &'a mut bool,
    /// Whether the tap hears of every packet that is accepted, or only of the first after a loss.
    pub(crate) tells_all: bool,
    pub(crate) tap: &'a mut T,
}

impl<P, T: Tap<P> + ?Sized> Tap<P> for Counting<'_, T> {
    #[inline]
    fn accepted(&mut self, packet: &P, now: Time) {
        if self.tells_all || *self.is_losing {
            *self.is_losing = false;
            self.tap.accepted(packet, now);
        }
    }
    fn dropped(&mut self, packet: P, cause: Cause, now: Time) {
        *self.is_losing = true;
        self.counts.dropped[cause.index()] += 1;
        self.tap.dropped(packet, cause, now);
    }
    fn marked(&mut self, packet: &P, cause: Cause, now: Time) {
        self.counts.marked[cause.index()] += 1;
        self.tap.marked(packet, cause, now);
    }
}

impl<P, H: Headers<P> + ?Sized> Headers<P> for Counting<'_, H> {
    fn hosts(&self, packet: &P) -> Option<(u32, u32)> {
        self.tap.hosts(packet)
    }
    fn ack(&self, packet: &P) -> Option<Ack> {
        self.tap.ack(packet)
    }
}
