//! A discipline of the interface at work. It orders handles; the packets are held and counted for it.

use crate::abi;
use crate::entry::{FAILED, Plan, drew};
use crate::foreign::{Instance, Wrong};
use aqm::Backlog;
use aqm::fault::Fault;
use aqm::law::Gauges;
use aqm::law::clock::Clock;
use aqm::param::Values;
use aqm::qdisc::brought::{Arriving, Handle, Next, Scheduler, Signals};
use aqm::qdisc::fifo::Limit;
use aqm::registry::Site;
use base::{Rate, Span, Time, maths};
use std::sync::Arc;

/// The discipline, with its state.
pub(crate) struct Holding {
    plan: Arc<Plan>,
    instance: Instance,
    limit: Limit,
    ecn_enabled: bool,
    clock: Option<Clock>,
}

impl Holding {
    /// In the place where it stays: its first call is told where its queue is.
    pub(crate) fn boxed(plan: &Arc<Plan>, values: &Values, site: Site) -> Box<Self> {
        let instance = Instance::new(&plan.foreign, &plan.causes, site.stream);
        let clock = plan.clock(values);
        let limit = Limit::of(values);
        let mut discipline = Box::new(Self { plan: Arc::clone(plan), instance, limit, ecn_enabled: false, clock });
        discipline.take_over(values, site.rate, Time::ZERO);
        discipline
    }

    /// Nothing waits, or what was heard of last.
    fn take_over(&mut self, values: &Values, rate: Rate, now: Time) {
        self.limit = Limit::of(values);
        self.ecn_enabled = values.flag("ecn");
        self.instance.set_may_mark(self.ecn_enabled);
        self.instance.set_rate(rate);
        let queue = self.instance.queue();
        (queue.limit_packets, queue.limit_bytes) = match self.limit {
            Limit::Packets(packets) => (i64::from(packets), i64::MAX),
            Limit::Bytes(bytes) => (i64::MAX, bytes.min(i64::MAX as u64 - 1) as i64),
        };
        self.plan.write(values, &mut self.instance);
        self.about_no_packet(now);
        self.told("prepare", self.plan.foreign.table().prepare);
    }

    /// Fills in what is told in the next call, in which no packet arrives.
    fn about(&mut self, backlog: Backlog, now: Time) {
        self.hear_backlog(backlog);
        self.about_no_packet(now);
    }

    fn about_no_packet(&mut self, now: Time) {
        let queue = self.instance.queue();
        (queue.handle, queue.dscp, queue.is_full) = (0, 0, 0);
        let facts = &mut queue.facts;
        (facts.size, facts.ecn, facts.may_mark, facts.flow, facts.source, facts.destination) = (0, 0, 0, 0, -1, -1);
        facts.now_ns = now.ns() as i64;
    }

    /// Makes a call in which nothing is done to packets.
    fn told(&mut self, what: &str, call: abi::Call) {
        let said = self.instance.call(call);
        let wrong = self.instance.wrong();
        let said = i64::from(said);
        match self.answered(what, wrong.map_or(Ok(said), Err)) {
            0 => {}
            other => self.misbehaves(what, &format!("answered {other}: expected 0")),
        }
    }

    /// What a call answered, unless something is wrong.
    fn answered(&mut self, what: &str, said: Result<i64, Wrong>) -> i64 {
        if let Some(p) = self.instance.refused() {
            self.misbehaves(what, &drew(p));
        }
        match said {
            Err(Wrong::Packet(fault)) => fault.during(&self.place(what)).raise(),
            Err(Wrong::Said(packet, did)) => {
                Fault::of_discipline(&*self.plan.name, did).about(packet).during(&self.place(what)).raise()
            }
            Ok(said) if said == i64::from(abi::FAILED) => self.misbehaves(what, FAILED),
            Ok(said) => said,
        }
    }

    fn place(&self, what: &str) -> String {
        let at = Span::from_ns(self.instance.facts_now().now_ns as u64).secs_f64();
        format!(" (in {what}, at {at:.6} s)")
    }

    #[cold]
    fn misbehaves(&self, what: &str, did: &str) -> ! {
        Fault::of_discipline(&*self.plan.name, did).during(&self.place(what)).raise()
    }
}

impl Scheduler for Holding {
    fn offer(&mut self, arriving: &Arriving, now: Time, signals: &mut dyn Signals) {
        let Arriving { handle, size, ecn, flow, dscp, hosts, backlog } = *arriving;
        self.about(backlog, now);
        let Some(word) = handle.word() else { self.misbehaves("offer", "had more packets than the interface numbers") };
        let is_full = !self.limit.holds(signals.held());
        let wants_hosts = self.plan.foreign.table().wants_hosts != 0;
        let may_mark = self.ecn_enabled && ecn.is_ect();
        let queue = self.instance.queue();
        (queue.handle, queue.dscp, queue.is_full) = (word, i64::from(dscp), i64::from(is_full));
        let facts = &mut queue.facts;
        facts.size = i64::from(size);
        facts.ecn = ecn as i64;
        facts.may_mark = i64::from(may_mark);
        facts.flow = (maths::mix64(flow.0) >> 1) as i64;
        if let Some((from, to)) = hosts.filter(|_| wants_hosts) {
            (facts.source, facts.destination) = (i64::from(from), i64::from(to));
        }
        let said = self.instance.offer(&self.plan.foreign, size, signals);
        match self.answered("offer", said) {
            0 => {}
            other => self.misbehaves("offer", &format!("answered {other}: expected 0")),
        }
        let held = signals.held();
        if self.instance.is_arriving_held() && !self.limit.holds(held) {
            let (Backlog { packets, bytes }, number) = (held, handle.number());
            let most = match self.limit {
                Limit::Packets(limit) => format!("{packets} packets, and its limit is {limit}"),
                Limit::Bytes(limit) => format!("{bytes} bytes, and its limit is {limit}"),
            };
            let what = format!("accepts packet {number} and then holds {most}: expected it to lose one");
            Fault::of_discipline(&*self.plan.name, what).about(number).during(&self.place("offer")).raise();
        }
    }

    fn take(&mut self, now: Time, signals: &mut dyn Signals) -> Next {
        self.about(signals.held(), now);
        let said = self.instance.take(&self.plan.foreign, signals);
        match self.answered("take", said) {
            0 => Next::Empty,
            abi::LATER => match self.instance.later_ns() {
                ns @ 1.. => Next::Later(now + Span::from_ns(ns as u64)),
                ns => self.misbehaves("take", &format!("wants to be asked again in {ns} ns: expected at least 1")),
            },
            word @ 1.. => Next::Packet(Handle::of_word(word)),
            other => self.misbehaves("take", &format!("answered {other}, which is no packet")),
        }
    }

    fn next_tick(&self) -> Time {
        self.clock.map_or(Time::NEVER, |clock| clock.next())
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.as_mut().is_some_and(|clock| clock.take(now)) {
            self.about(backlog, now);
            self.told("tick", self.plan.foreign.table().tick);
        }
    }

    fn gauges(&self) -> Gauges {
        self.plan.shown(&self.instance).unwrap_or_else(|did| self.misbehaves("a gauge", &did))
    }

    fn hear_backlog(&mut self, backlog: Backlog) {
        let facts = self.instance.facts();
        (facts.backlog_packets, facts.backlog_bytes) = (i64::from(backlog.packets), backlog.bytes as i64);
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.clock = self.plan.clock_instead_of(self.clock, values, now);
        self.take_over(values, rate, now);
    }
}
