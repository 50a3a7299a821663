//! What fair queueing owes a flow that keeps to its share, whatever law acts on the queues.
//!
//! A flow of a tenth of the link, evenly spaced, beside one that sends twice the link's rate and does not respond. The
//! first one's queue is empty whenever it sends, so it goes first and waits for the packet in transmission, which is
//! shorter than its own gap, and for what is left of another's turn.

use crate::common::{Parcel, built};
use aqm::law::clock::Clock;
use aqm::law::{Arrival, Departure, Law, Verdict};
use aqm::param::{Length, Value, Values};
use aqm::qdisc::fq_law;
use aqm::registry::{Row, Site};
use aqm::{Backlog, Cause, Egress, Headers, Tap, registry};
use base::{Ecn, Rate, Span, Stream, Time};
use std::sync::{Arc, Mutex};

const RATE: Rate = Rate::from_bps(10_000_000);
const SIZE: u32 = 1000;
const PACKET: Span = Span::from_us(800);
/// The flow that keeps to its share, and the one that does not.
const MODEST: u64 = 1;
const GREEDY: u64 = 2;

#[derive(Default)]
struct Losses {
    modest: u64,
    greedy: u64,
    /// Of the greedy flow, to make room for it or by its law.
    by_law: u64,
}

impl Tap<Parcel> for Losses {
    fn dropped(&mut self, packet: Parcel, cause: Cause, _now: Time) {
        if packet.flow == MODEST {
            self.modest += 1;
        } else {
            self.greedy += 1;
            self.by_law += u64::from(cause != Cause::TAIL);
        }
    }
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {}
}

impl Headers<Parcel> for Losses {}

#[test]
fn a_law_without_a_source_and_a_year_gets_none_that_are_not_its_own() {
    let law = registry::rows().find(|row| row.name == "pie").expect("it is built in");
    let of_a_user = fq_law::row(&Row { source: "".into(), year: 0, ..law.clone() });
    assert_eq!((&*of_a_user.source, of_a_user.year), ("RFC 8290", 0));
    let known = fq_law::row(law);
    assert_eq!((&*known.source, known.year), (&*format!("RFC 8290; {}", law.source), 2018));
}

#[test]
fn a_flow_within_its_share_neither_waits_nor_loses() {
    let mut laws_at_work = 0;
    for row in registry::fair_rows() {
        // No limit shared with the greedy flow stands in the way of the law.
        let qdisc = built::<Parcel>(&row.name, &[("limit", "1000000p")], RATE, Stream::named(1, "q"));
        let mut egress = Egress::new(RATE, qdisc);
        let (mut losses, mut delivered, mut longest) = (Losses::default(), 0_u64, Span::ZERO);
        for slot in 0..40_000_u64 {
            let now = Time::ZERO + Span::from_ns(PACKET.ns() / 2 * slot);
            while egress.next_event() <= now {
                if let Some(delivery) = egress.advance(now, &mut losses)
                    && delivery.packet.flow == MODEST
                {
                    delivered += 1;
                    longest = longest.max(delivery.waited);
                }
            }
            egress.offer(Parcel { number: slot, size: SIZE, ecn: Ecn::NotEct, flow: GREEDY }, now, &mut losses);
            if slot % 20 == 7 {
                egress.offer(Parcel { number: slot, size: SIZE, ecn: Ecn::NotEct, flow: MODEST }, now, &mut losses);
            }
        }
        egress.assert_conserved();
        assert_eq!(losses.modest, 0, "{}", row.name);
        assert!(delivered >= 1999, "{}: {delivered} of 2000", row.name);
        // The packet in transmission, and one more that the greedy flow's turn may still hold.
        assert!(longest.ns() <= 2 * PACKET.ns(), "{}: {longest:?}", row.name);
        laws_at_work += usize::from(losses.by_law > 0);
    }
    // BLUE and RIO-PS wait for a full queue, SRED counts flows of which it sees one, the steps only mark, and
    // DOCSIS-PIE has its own limit: the rest have dropped by now.
    assert!(laws_at_work >= registry::fair_rows().len() - 5, "{laws_at_work} laws dropped something");
}

#[test]
fn a_queue_that_refused_what_found_it_empty_is_idle() {
    // A burst brings the average above max. The queue has drained when a packet comes that is lost for it: no turn
    // finds that queue empty afterwards, and yet the average must have decayed by the next packet, an hour later.
    let written = [("limit", "1000000p"), ("min", "5p"), ("max", "15p"), ("wq", "0.1")];
    let mut egress = Egress::new(RATE, built::<Parcel>("fq_red", &written, RATE, Stream::named(1, "q")));
    let mut losses = Losses::default();
    let mut number = 0;
    let mut offer = |egress: &mut Egress<Parcel>, now: Time, losses: &mut Losses| {
        while egress.next_event() <= now {
            egress.advance(now, losses);
        }
        number += 1;
        egress.offer(Parcel { number, size: SIZE, ecn: Ecn::NotEct, flow: GREEDY }, now, losses);
    };
    for _ in 0..1000 {
        offer(&mut egress, Time::ZERO, &mut losses);
    }
    // A packet accepted on average of 16 or less, in which one in 50 at most was lost, and none above 15.
    let drained = Time::ZERO + Span::from_ns(PACKET.ns() * (1001 - losses.greedy));
    let before = losses.greedy;
    offer(&mut egress, drained, &mut losses);
    assert_eq!(losses.greedy, before + 1, "the average has not decayed at once");
    offer(&mut egress, drained + Span::from_secs(3600), &mut losses);
    assert_eq!(losses.greedy, before + 1, "an hour is idle");
    egress.assert_conserved();
}

/// A law that ticks sooner after a period in which a packet came, and writes down when it did.
struct Beating {
    next: Time,
    has_arrived: bool,
    ticks: Ticks,
}

/// When a law ticked.
type Ticks = Arc<Mutex<Vec<Time>>>;

const SOON: Span = Span::from_ms(30);
const LATE: Span = Span::from_ms(100);

impl Law for Beating {
    fn on_arrival(&mut self, _arrival: &Arrival, _now: Time) -> Verdict {
        self.has_arrived = true;
        Verdict::Pass
    }
    fn next_tick(&self) -> Time {
        self.next
    }
    fn tick(&mut self, _backlog: Backlog, now: Time) {
        if now >= self.next {
            self.ticks.lock().expect("nobody panics").push(self.next);
            self.next += if std::mem::take(&mut self.has_arrived) { SOON } else { LATE };
        }
    }
    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}
}

#[test]
fn each_law_ticks_as_it_would_alone() {
    const END: Time = Time::from_ns(20_000_000_000);
    // One flow from the start, one whose first packet comes after ten seconds, in bursts.
    let comes = |flow: u64, ms: u64| match flow {
        MODEST => ms % 70 == 3,
        _ => ms > 10_000 && (ms / 500).is_multiple_of(2) && ms % 40 == 1,
    };
    let values = [
        ("limit", Value::Length(Length::Packets(1000.0))),
        ("quantum", Value::Size(1514)),
        ("queues", Value::Integer(64)),
    ];
    let mut written = Values::default();
    written.0.extend(values.map(|(name, value)| (name.into(), value)));
    let all: Arc<Mutex<Vec<Ticks>>> = Arc::default();
    let made = |_| {
        let ticks = Ticks::default();
        all.lock().expect("nobody panics").push(Arc::clone(&ticks));
        Beating { next: Time::ZERO + LATE, has_arrived: false, ticks }
    };
    let mut qdisc = fq_law::around::<Parcel, _>(&written, Site { rate: RATE, stream: Stream::named(1, "q") }, made);
    let mut losses = Losses::default();
    for ms in 0..END.ns() / 1_000_000 {
        // Packets come between the milliseconds, at which laws tick.
        let now = Time::from_ns(ms * 1_000_000 + 500_000);
        while qdisc.next_tick() <= now {
            let due = qdisc.next_tick();
            qdisc.tick(due);
            assert!(qdisc.next_tick() > due);
        }
        for flow in [MODEST, GREEDY] {
            if comes(flow, ms) {
                qdisc.offer(Parcel { number: ms, size: SIZE, ecn: Ecn::NotEct, flow }, now, &mut losses);
            }
        }
        qdisc.take(now, &mut losses);
    }
    let alone = |flow: u64| {
        let (mut ticks, mut next) = (Vec::new(), 100);
        let mut has_arrived = false;
        for ms in 0..END.ns() / 1_000_000 {
            if ms == next {
                ticks.push(Time::from_ns(ms * 1_000_000));
                next += if std::mem::take(&mut has_arrived) { 30 } else { 100 };
            }
            has_arrived |= comes(flow, ms);
        }
        ticks
    };
    let all = all.lock().expect("nobody panics");
    let told: Vec<Vec<Time>> = all.iter().map(|ticks| ticks.lock().expect("nobody panics").clone()).collect();
    assert!(alone(MODEST) != alone(GREEDY) && told.contains(&alone(MODEST)) && told.contains(&alone(GREEDY)));
    // The first is no queue's, and the others sleep for ever.
    assert_eq!(told[1..].iter().filter(|ticks| !ticks.is_empty()).count(), 2);
}

/// A law that stands for its clock: whatever it hears, all ticks that were due have come, at their instants, and no
/// more. It rests as soon as nothing has happened between two ticks.
struct Strict {
    clock: Clock,
    /// Whether it lets others move its clock while it rests.
    shows_clock: bool,
    is_calm: bool,
    heard: u64,
    total: Arc<Mutex<u64>>,
}

impl Strict {
    fn hears(&mut self, now: Time) {
        assert!(now < self.clock.next(), "a tick of {:?} comes after {now:?}", self.clock.next());
        let last = self.clock.next().since(Time::ZERO).ns().saturating_sub(self.period().ns());
        assert!(now.since(Time::ZERO).ns() >= last, "a tick of {last} ns has come before {now:?}");
        (self.is_calm, self.heard) = (false, self.heard + 1);
        *self.total.lock().expect("nobody panics") += 1;
    }

    fn period(&self) -> Span {
        let mut after = self.clock;
        after.skip(1);
        after.next().since(self.clock.next())
    }
}

impl Law for Strict {
    fn on_arrival(&mut self, _arrival: &Arrival, now: Time) -> Verdict {
        self.hears(now);
        Verdict::Pass
    }
    fn on_overflow(&mut self, _arrival: &Arrival, now: Time) {
        self.hears(now);
    }
    fn on_departure(&mut self, _departure: &Departure, now: Time) -> Verdict {
        self.hears(now);
        Verdict::Pass
    }
    fn on_idle(&mut self, now: Time) {
        self.hears(now);
    }
    fn next_tick(&self) -> Time {
        self.clock.next()
    }
    fn tick(&mut self, _backlog: Backlog, now: Time) {
        assert_eq!(now, self.clock.next());
        assert!(self.clock.take(now));
        self.is_calm = std::mem::take(&mut self.heard) == 0;
    }
    fn is_at_rest(&self) -> bool {
        self.is_calm
    }
    fn clock(&mut self) -> Option<&mut Clock> {
        self.shows_clock.then_some(&mut self.clock)
    }
    fn retune(&mut self, values: &Values, _rate: Rate, now: Time) {
        self.clock = Clock::every(values.time("tupdate")).instead_of(self.clock, now);
    }
}

#[test]
fn no_law_hears_of_anything_while_it_sleeps_nor_ticks_too_soon_or_late() {
    for shows_clock in [false, true] {
        let mut random = Stream::named(7, "story");
        let mut period = Span::from_ms(15);
        let values = |period: Span| {
            let mut written = Values::default();
            written.0.extend([
                ("limit".into(), Value::Length(Length::Packets(30.0))),
                ("quantum".into(), Value::Size(300)),
                ("queues".into(), Value::Integer(16)),
                ("tupdate".into(), Value::Time(period)),
            ]);
            written
        };
        let total = Arc::default();
        let made = |_| Strict {
            clock: Clock::every(Span::from_ms(15)),
            shows_clock,
            is_calm: true,
            heard: 0,
            total: Arc::clone(&total),
        };
        let site = Site { rate: RATE, stream: Stream::named(1, "q") };
        let mut qdisc = fq_law::around::<Parcel, _>(&values(period), site, made);
        let mut losses = Losses::default();
        for ms in 0..60_000 {
            // What comes is between the milliseconds, at which laws tick.
            let now = Time::from_ns(ms * 1_000_000 + 500_000);
            while qdisc.next_tick() <= now {
                qdisc.tick(qdisc.next_tick());
            }
            // More than there is room for, then little or nothing; a flow more every five seconds.
            let packets = if (ms / 700).is_multiple_of(3) { 3 } else { u64::from(random.chance(0.05)) };
            for _ in 0..packets {
                let flow = (random.bits() % (1 + ms / 5000)) % 12;
                qdisc.offer(Parcel { number: ms, size: SIZE, ecn: Ecn::NotEct, flow }, now, &mut losses);
            }
            for _ in 0..random.bits() % 4 {
                qdisc.take(now, &mut losses);
            }
            if random.chance(0.0005) || ms == 100 {
                period = Span::from_ms(1 + random.bits() % 5);
                qdisc.retune(&values(period), RATE, now);
            }
        }
        assert!(losses.greedy > 1000 && *total.lock().expect("nobody panics") > 100_000);
    }
}
