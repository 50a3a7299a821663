//! Disciplines that are brought from outside: they serve packets of any type, keep them, and are named where they do
//! not.

mod common;

use aqm::param::Values;
use aqm::qdisc::brought::{Arriving, Handle, Next, Scheduler, Signals};
use aqm::registry::{self, Entry, Row, Site, as_given};
use aqm::{Cause, Egress, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time};
use common::{Parcel, Recorder, Told};
use std::collections::VecDeque;

/// On it 1000 bytes take a millisecond.
const RATE: Rate = Rate::from_bps(8_000_000);

const ROW: Row = Row {
    name: "shortest_first",
    aliases: &[],
    doc: "Sends the shortest packet first.",
    source: "none",
    year: 2026,
    marks: true,
    params: &[registry::limit("3p", "none"), registry::ECN],
    fixed: &[],
    gauges: &[],
    uses_rate: registry::never,
    resolve: as_given,
};

/// Of so many at most, the shortest first. The longest is lost where there is no room, and who waited is marked.
struct ShortestFirst {
    limit: usize,
    waiting: Vec<(u32, Handle, Ecn)>,
}

impl Scheduler for ShortestFirst {
    fn offer(&mut self, arriving: &Arriving, _now: Time, signals: &mut dyn Signals) {
        assert_eq!(arriving.backlog.packets as usize, self.waiting.len());
        self.waiting.push((arriving.size, arriving.handle, arriving.ecn));
        self.waiting.sort_by_key(|(size, ..)| *size);
        if self.waiting.len() > self.limit {
            let (_, longest, _) = self.waiting.pop().expect("there is one");
            signals.drop(longest, Cause::Tail);
        }
    }

    fn take(&mut self, _now: Time, signals: &mut dyn Signals) -> Next {
        if self.waiting.is_empty() {
            return Next::Empty;
        }
        let (_, handle, ecn) = self.waiting.remove(0);
        if ecn.is_ect() {
            signals.mark(handle, Cause::Early);
        }
        Next::Packet(handle)
    }

    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}
}

fn built<P: Packet + Send + 'static>(entry: &Entry) -> Box<dyn Qdisc<P> + Send> {
    entry.build(&Values::default(), Site { rate: RATE, stream: Stream::named(1, "q") })
}

fn shortest_first() -> Entry {
    Entry::qdisc(ROW, |_| 0, |_, _| Box::new(ShortestFirst { limit: 3, waiting: vec![] }))
}

fn parcel(number: u64, size: u32, ecn: Ecn) -> Parcel {
    Parcel { number, size, ecn, flow: 1 }
}

#[test]
fn it_orders_marks_and_loses_the_packets_of_a_link() {
    let mut link: Egress<Parcel> = Egress::new(RATE, built(&shortest_first()));
    let mut told = Recorder::default();
    // The first is sent at once. Of the others 900 bytes are too many; 300, 500 and 700 leave in this order.
    for (number, size) in [(1, 1000), (2, 700), (3, 300), (4, 900), (5, 500)] {
        link.offer(parcel(number, size, if number == 2 { Ecn::Ect0 } else { Ecn::NotEct }), Time::ZERO, &mut told);
        link.assert_conserved();
    }
    let end = Time::from_ns(10_000_000);
    let mut left = vec![];
    while link.next_event() <= end {
        left.extend(link.advance(end, &mut told).map(|d| (d.packet.number, d.packet.ecn, d.at.ns() / 1000)));
        link.assert_conserved();
    }
    assert_eq!(left, [(1, Ecn::NotEct, 1000), (3, Ecn::NotEct, 1300), (5, Ecn::NotEct, 1800), (2, Ecn::Ce, 2500)]);
    use Told::{Accepted, Dropped, Marked};
    let heard = [Accepted(1), Accepted(2), Accepted(3), Accepted(4), Dropped(4, Cause::Tail), Accepted(5)];
    assert_eq!(told.0, [&heard[..], &[Marked(2, Cause::Early)]].concat());
}

/// A packet of another driver, that owns its bytes.
struct Buffer(Vec<u8>);

impl Packet for Buffer {
    fn size(&self) -> u32 {
        self.0.len() as u32
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark(&mut self) {}
    fn flow(&self) -> FlowKey {
        FlowKey(1)
    }
}

struct Lost(usize);

impl Tap<Buffer> for Lost {
    fn dropped(&mut self, packet: Buffer, _cause: Cause, _now: Time) {
        self.0 += packet.0.len();
    }
    fn marked(&mut self, _packet: &Buffer, _cause: Cause, _now: Time) {}
}

impl Headers<Buffer> for Lost {}

#[test]
fn one_entry_serves_packets_of_every_type() {
    let entry = shortest_first();
    let (mut queue, mut lost) = (built::<Buffer>(&entry), Lost(0));
    [50, 20, 40, 30].into_iter().for_each(|size| queue.offer(Buffer(vec![0; size]), Time::ZERO, &mut lost));
    assert_eq!((queue.backlog().packets, queue.backlog().bytes, lost.0), (3, 90, 50));
    let sizes: Vec<u32> =
        std::iter::from_fn(|| queue.take(Time::ZERO, &mut lost).packet()).map(|held| held.packet.size()).collect();
    assert_eq!(sizes, [20, 30, 40]);
}

/// What a broken scheduler does.
#[derive(Clone, Copy)]
enum Fault {
    Forgets,
    SendsTwice,
    LosesWhatItSent,
    MarksWhatCannotBe,
}

struct Broken(Fault, VecDeque<Handle>, Option<Handle>);

impl Scheduler for Broken {
    fn offer(&mut self, arriving: &Arriving, _now: Time, signals: &mut dyn Signals) {
        match self.0 {
            Fault::Forgets if !self.1.is_empty() => {}
            Fault::MarksWhatCannotBe => signals.mark(arriving.handle, Cause::Early),
            _ => self.1.push_back(arriving.handle),
        }
    }

    fn take(&mut self, _now: Time, signals: &mut dyn Signals) -> Next {
        let before = std::mem::replace(&mut self.2, self.1.front().copied());
        match (self.0, before) {
            (Fault::SendsTwice, Some(handle)) => return Next::Packet(handle),
            (Fault::LosesWhatItSent, Some(handle)) => signals.drop(handle, Cause::Early),
            _ => {}
        }
        self.1.pop_front().map_or(Next::Empty, Next::Packet)
    }

    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}
}

/// Three packets into a discipline with a fault; what it is told then.
fn complaint(fault: Fault) -> String {
    let entry = Entry::qdisc(ROW, |_| 0, move |_, _| Box::new(Broken(fault, VecDeque::new(), None)));
    let run = move || {
        let mut link: Egress<Parcel> = Egress::new(RATE, built(&entry));
        let mut told = Recorder::default();
        (1..=3).for_each(|number| link.offer(parcel(number, 1000, Ecn::NotEct), Time::ZERO, &mut told));
        let end = Time::ZERO + Span::from_secs(1);
        while link.next_event() <= end {
            link.advance(end, &mut told);
        }
    };
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it is caught");
    *payload.downcast::<String>().expect("a message")
}

#[test]
fn a_discipline_that_does_not_keep_its_packets_is_named() {
    for (fault, what) in [
        (Fault::Forgets, "says that nothing waits, but packets are held for it: 1"),
        (Fault::SendsTwice, "sends a packet that it does not hold: it has left before"),
        (Fault::LosesWhatItSent, "loses a packet that it does not hold: it has left before"),
        (Fault::MarksWhatCannotBe, "marks a packet that is not ECN-capable"),
    ] {
        assert_eq!(complaint(fault), format!("the discipline shortest_first {what}"));
    }
}
