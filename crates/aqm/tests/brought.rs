//! Disciplines that are brought from outside: they serve packets of any type, keep them, and are named where they do
//! not.

use crate::common::{Parcel, Recorder, Told};
use aqm::fault::caught;
use aqm::param::Values;
use aqm::qdisc::brought::{Arriving, Handle, Next, Scheduler, Signals};
use aqm::registry::{self, Entry, Row, Site, as_given};
use aqm::{Cause, Egress, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

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
    causes: &[],
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
            signals.drop(longest, Cause::TAIL);
        }
    }

    fn take(&mut self, _now: Time, signals: &mut dyn Signals) -> Next {
        if self.waiting.is_empty() {
            return Next::Empty;
        }
        let (_, handle, ecn) = self.waiting.remove(0);
        if ecn.is_ect() {
            signals.mark(handle, Cause::EARLY);
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
    let heard = [Accepted(1), Accepted(2), Accepted(3), Accepted(4), Dropped(4, Cause::TAIL), Accepted(5)];
    assert_eq!(told.0, [&heard[..], &[Marked(2, Cause::EARLY)]].concat());
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
    SendsWhatItLost,
    LosesWhatItSent,
    MarksWhatCannotBe,
    Stands,
}

struct Broken(Fault, VecDeque<Handle>, Option<Handle>);

impl Scheduler for Broken {
    fn offer(&mut self, arriving: &Arriving, _now: Time, signals: &mut dyn Signals) {
        match self.0 {
            Fault::Forgets if !self.1.is_empty() => {}
            Fault::MarksWhatCannotBe => signals.mark(arriving.handle, Cause::EARLY),
            _ => self.1.push_back(arriving.handle),
        }
    }

    fn take(&mut self, now: Time, signals: &mut dyn Signals) -> Next {
        let before = std::mem::replace(&mut self.2, self.1.front().copied());
        match (self.0, before) {
            (Fault::SendsWhatItLost, Some(_)) => signals.drop(*self.1.front().expect("two wait"), Cause::EARLY),
            (Fault::Stands, Some(_)) => return Next::Later(now),
            (Fault::SendsTwice, Some(handle)) => return Next::Packet(handle),
            (Fault::LosesWhatItSent, Some(handle)) => signals.drop(handle, Cause::EARLY),
            _ => {}
        }
        self.1.pop_front().map_or(Next::Empty, Next::Packet)
    }

    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}
}

/// Three packets into a discipline with a fault; what it is told then.
fn complaint(fault: Fault) -> aqm::Fault {
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
    caught(run).expect_err("it is caught")
}

#[test]
fn a_discipline_that_does_not_keep_its_packets_is_named() {
    for (fault, packet, what) in [
        (Fault::Forgets, 3, "says that nothing waits, but holds packet 3"),
        (Fault::SendsTwice, 1, "sends packet 1, which it does not hold: it was sent before"),
        (Fault::SendsWhatItLost, 2, "sends packet 2, which it does not hold: it was lost before"),
        (Fault::LosesWhatItSent, 1, "loses packet 1, which it does not hold: it was sent before"),
        (Fault::MarksWhatCannotBe, 1, "marks packet 1, which is not ECN-capable"),
        (Fault::Stands, 0, "sends nothing and asks to be asked again at a time that is not later"),
    ] {
        let said = complaint(fault);
        let message = said.message();
        let where_it_was = message.strip_prefix(&format!("the discipline shortest_first {what}"));
        assert!(where_it_was.is_some_and(|rest| rest.is_empty() || rest.starts_with(" (in take, at 0.")), "{message}");
        assert_eq!(said.packet().unwrap_or(0), packet);
    }
}

#[test]
fn a_handle_is_one_number_and_in_the_order_of_arrivals() {
    let seen = Arc::new(Mutex::new(vec![]));
    let handles = Arc::clone(&seen);
    let entry = Entry::qdisc(ROW, |_| 0, move |_, _| Box::new(Writes(Arc::clone(&handles), VecDeque::new())));
    let (mut queue, mut told) = (built::<Parcel>(&entry), Recorder::default());
    // Places are used again after a while.
    for number in 1..=400 {
        queue.offer(parcel(number, 1000, Ecn::NotEct), Time::ZERO, &mut told);
        if number % 2 == 0 {
            queue.take(Time::ZERO, &mut told).packet().expect("it sends the newest");
        }
    }
    let seen = seen.lock().expect("nobody panicked with it");
    assert_eq!(seen.iter().map(|handle: &Handle| handle.number()).collect::<Vec<_>>(), (1..=400).collect::<Vec<_>>());
    let words: Vec<i64> = seen.iter().map(|handle| handle.word().expect("it fits")).collect();
    assert!(words.is_sorted() && words[0] > 0, "{words:?}");
    assert!(words.iter().zip(seen.iter()).all(|(word, handle)| Handle::of_word(*word) == *handle));
}

/// Sends the newest first, and writes down the handles.
struct Writes(Arc<Mutex<Vec<Handle>>>, VecDeque<Handle>);

impl Scheduler for Writes {
    fn offer(&mut self, arriving: &Arriving, _now: Time, signals: &mut dyn Signals) {
        assert_eq!(signals.held().packets, arriving.backlog.packets + 1);
        self.0.lock().expect("nobody panicked with it").push(arriving.handle);
        self.1.push_back(arriving.handle);
    }

    fn take(&mut self, _now: Time, _signals: &mut dyn Signals) -> Next {
        self.1.pop_back().map_or(Next::Empty, Next::Packet)
    }

    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}
}
