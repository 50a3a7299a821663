//! A control law decides about the packet in hand and never holds one. Each law has a file.

pub mod afd;
pub mod ared;
pub mod average;
pub mod blue;
pub mod clock;
pub mod cobalt;
pub mod codel;
pub mod coupling;
pub mod curve;
pub mod dcn;
pub mod docsis_pie;
pub mod drain;
pub mod feng_red;
pub mod flows;
pub mod fred;
pub mod gsp;
pub mod measure;
pub mod pass;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod red;
pub mod red_pd;
pub mod rem;
pub mod rio;
pub mod rio_ps;
pub mod sfb;
pub mod spacing;
pub mod sred;
pub mod step;
pub mod threshold;

use crate::cause::Cause;
pub use crate::gauge::Gauges;
use crate::packet::Backlog;
use crate::param::Values;
use crate::qdisc::fifo::{End, Limit};
use base::{Ecn, FlowKey, Rate, Stream, Time};
use clock::Clock;

/// What a law knows when a packet arrives at the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Size in bytes (IP packet).
    pub size: u32,
    /// ECN field as it arrived.
    pub ecn: Ecn,
    /// Flow.
    pub flow: FlowKey,
    /// What waits already; the arriving packet and the one in transmission are not counted.
    pub backlog: Backlog,
}

/// What a law knows when a packet comes to the head of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Size in bytes (IP packet).
    pub size: u32,
    /// ECN field.
    pub ecn: Ecn,
    /// The Differentiated Services codepoint, 0 to 63.
    pub dscp: u8,
    /// Flow.
    pub flow: FlowKey,
    /// When it was accepted; `now.since(enqueued)` is its sojourn time.
    pub enqueued: Time,
    /// What still waits behind it; this packet is not counted.
    pub backlog: Backlog,
}

impl Departure {
    /// The byte of the IP header that has both: the codepoint in its upper six bits, the ECN field below (RFC 3168 §5).
    #[inline]
    pub const fn ds_field(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }
}

/// What to do with the packet in hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Forward it as it is.
    Pass,
    /// Set congestion experienced and forward it. Only packets whose field [`Ecn::is_ect`] get it.
    Mark(Cause),
    /// Lose it.
    Drop(Cause),
}

impl Verdict {
    /// The congestion signal a packet can carry: a mark if `ecn_enabled` and the packet is ECN-capable, else a loss.
    pub const fn signal(ecn_enabled: bool, ecn: Ecn, cause: Cause) -> Self {
        if ecn_enabled && ecn.is_ect() { Self::Mark(cause) } else { Self::Drop(cause) }
    }
}

/// A control law. All methods may be called early or often without harm; none reads a clock.
pub trait Law {
    /// Decides about an arriving packet. It is not called for a packet that the queue's hard limit refuses.
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        let _ = (arrival, now);
        Verdict::Pass
    }

    /// Whether the law wants to know between which hosts a packet goes ([`Law::hear_hosts`]).
    fn wants_hosts(&self) -> bool {
        false
    }

    /// Hears between which hosts the next packet of [`Law::on_arrival`] goes, as
    /// [`Headers::hosts`](crate::Headers::hosts) says.
    fn hear_hosts(&mut self, hosts: Option<(u32, u32)>) {
        let _ = hosts;
    }

    /// Hears that an arriving packet met the hard limit of the queue and was lost.
    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        let _ = (arrival, now);
    }

    /// Hears that the discipline lost `packets` from the head of this law's queue, to keep a limit that queues share.
    fn on_eviction(&mut self, packets: u32, now: Time) {
        let _ = (packets, now);
    }

    /// Decides about the packet that came to the head of the queue. After a drop the next packet follows at once.
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let _ = (departure, now);
        Verdict::Pass
    }

    /// Hears that the link asked for a packet and there was none. From `now` on the link is idle; behind a device queue
    /// only this queue is empty.
    fn on_idle(&mut self, now: Time) {
        let _ = now;
    }

    /// When [`Law::tick`] wants to be called next. It changes only inside `tick` and `retune`; a law that does what is
    /// due before it hears of anything else may go on to its next tick there, too.
    fn next_tick(&self) -> Time {
        Time::NEVER
    }

    /// Does the periodic work that is due at `now`, which must not be before [`Law::next_tick`]; an early call is
    /// ignored.
    fn tick(&mut self, backlog: Backlog, now: Time) {
        let _ = (backlog, now);
    }

    /// Whether ticks would change nothing until the next packet arrives, given an empty queue. Among many queues such a
    /// law gets no ticks, and hears of those that it slept through when the next packet comes.
    fn is_at_rest(&self) -> bool {
        false
    }

    /// The clock of a law whose ticks, at rest, do nothing but to move it on.
    fn clock(&mut self) -> Option<&mut Clock> {
        None
    }

    /// Takes so many ticks, one after the other when each is due, with an empty queue.
    fn sleep_through(&mut self, ticks: u64) {
        for taken in 0..ticks {
            if self.is_at_rest()
                && let Some(clock) = self.clock()
            {
                return clock.skip(ticks - taken);
            }
            self.tick(Backlog::default(), self.next_tick());
        }
    }

    /// Whether the law keeps something of each packet from its arrival until it leaves: it must then hear of all.
    fn follows_packets(&self) -> bool {
        false
    }

    /// What the law shows of itself.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// Hears what waits, right before [`Law::retune`].
    fn hear_backlog(&mut self, backlog: Backlog) {
        let _ = backlog;
    }

    /// Takes over resolved parameters and the rate of the link from `now` on. The law keeps what it has learnt: its
    /// averages and probabilities, what it knows of flows, the running times and where its random stream stands. A
    /// parameter that says where a state begins sets that state if it has changed.
    ///
    /// Parameters that [`Row::fixed`](crate::registry::Row::fixed) names are as they were.
    fn retune(&mut self, values: &Values, rate: Rate, now: Time);

    /// What a queue of its own may hold, and what it loses when it is full.
    fn room(values: &Values) -> (Limit, End)
    where
        Self: Sized,
    {
        (Limit::of(values), End::Tail)
    }
}

/// A law whose type is known only while the program runs. It keeps answers that each packet needs and that hardly ever
/// change.
pub struct Boxed {
    law: Box<dyn Law + Send>,
    wants_hosts: bool,
    next_tick: Time,
}

impl From<Box<dyn Law + Send>> for Boxed {
    fn from(law: Box<dyn Law + Send>) -> Self {
        Self { wants_hosts: law.wants_hosts(), next_tick: law.next_tick(), law }
    }
}

impl Law for Boxed {
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.law.on_arrival(arrival, now)
    }
    fn wants_hosts(&self) -> bool {
        self.wants_hosts
    }
    fn hear_hosts(&mut self, hosts: Option<(u32, u32)>) {
        self.law.hear_hosts(hosts);
    }
    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.law.on_overflow(arrival, now);
    }
    fn on_eviction(&mut self, packets: u32, now: Time) {
        self.law.on_eviction(packets, now);
    }
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        self.law.on_departure(departure, now)
    }
    fn on_idle(&mut self, now: Time) {
        self.law.on_idle(now);
    }
    fn next_tick(&self) -> Time {
        self.next_tick
    }
    fn tick(&mut self, backlog: Backlog, now: Time) {
        self.law.tick(backlog, now);
        self.next_tick = self.law.next_tick();
    }
    fn is_at_rest(&self) -> bool {
        self.law.is_at_rest()
    }
    fn clock(&mut self) -> Option<&mut Clock> {
        self.law.clock()
    }
    fn sleep_through(&mut self, ticks: u64) {
        self.law.sleep_through(ticks);
        self.next_tick = self.law.next_tick();
    }
    fn follows_packets(&self) -> bool {
        self.law.follows_packets()
    }
    fn gauges(&self) -> Gauges {
        self.law.gauges()
    }
    fn hear_backlog(&mut self, backlog: Backlog) {
        self.law.hear_backlog(backlog);
    }
    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.law.retune(values, rate, now);
        self.next_tick = self.law.next_tick();
    }
}

/// True with probability `p`, where 0 and less is never and 1 and more always. It draws only if chance decides, so that
/// a law that has nothing to signal takes no random number.
#[inline]
pub fn is_drawn(stream: &mut Stream, p: f64) -> bool {
    p > 0.0 && (p >= 1.0 || stream.chance(p))
}
