//! A network interface's queue behind the discipline: worked out by hand, and against a plain writing of both.

use crate::common::{Parcel, Recorder, Told, built};
use aqm::param::Kind;
use aqm::qdisc::fifo::Limit;
use aqm::{Cause, Delivery, Egress, Framing, Tap, registry};
use base::{Ecn, Rate, Span, Stream, Time};
use proptest::prelude::*;
use std::collections::VecDeque;

/// On it 1000 bytes take a millisecond.
const RATE: Rate = Rate::from_bps(8_000_000);
const MS: u64 = 1_000_000;

fn link(device: Option<Limit>, qdisc: &str, written: &[(&str, &str)]) -> Egress<Parcel> {
    let egress = Egress::new(RATE, built(qdisc, written, RATE, Stream::named(1, "q")));
    match device {
        Some(limit) => egress.with_device_queue(limit),
        None => egress,
    }
}

fn parcel(number: u64, size: u32) -> Parcel {
    Parcel { number, size, ecn: Ecn::NotEct, flow: number % 5 }
}

fn at(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// Lets `link` do what is due up to `until`, which is as late as that.
fn advance(link: &mut Egress<Parcel>, until: Time, tap: &mut dyn Tap<Parcel>) -> Vec<Delivery<Parcel>> {
    let mut out = Vec::new();
    while link.next_event() <= until {
        out.extend(link.advance(until, tap));
        link.assert_conserved();
    }
    out
}

/// What comes out of `link` for packets of these instants, in nanoseconds, and sizes: which, when and after how long a
/// wait, in nanoseconds; and what was told.
fn run(link: &mut Egress<Parcel>, packets: &[(u64, u32)]) -> (Vec<(u64, u64, u64)>, Vec<Told>) {
    let mut told = Recorder::default();
    let mut out = Vec::new();
    for (number, &(ns, size)) in (0..).zip(packets) {
        // What is due at the instant of an arrival comes before it, as in the simulator.
        out.extend(advance(link, at(ns), &mut told));
        link.offer(parcel(number, size), at(ns), &mut told);
        link.assert_conserved();
    }
    out.extend(advance(link, at(3_600_000 * MS), &mut told));
    let delivered = out.iter().map(|d| (d.packet.number, d.at.ns(), d.waited.ns()));
    (delivered.collect(), told.0)
}

#[test]
fn before_a_loss_the_ring_and_the_discipline_are_full() {
    // Four descriptors, the packet in transmission one of them, before a drop-tail queue of three: seven are held.
    let mut link = link(Some(Limit::Packets(4)), "pfifo", &[("limit", "3p")]);
    let (delivered, told) = run(&mut link, &[(0, 1_000); 9]);
    let expected: Vec<_> = (0..7).map(|number| (number, (number + 1) * MS, number * MS)).collect();
    assert_eq!(delivered, expected, "in their order, each after those before it");
    let mut events: Vec<_> = (0..7).map(Told::Accepted).collect();
    events.extend([7, 8].map(|number| Told::Dropped(number, Cause::TAIL)));
    assert_eq!(told, events);
}

#[test]
fn a_burst_into_an_idle_link_goes_through_the_discipline_into_the_ring() {
    let mut link = link(Some(Limit::Packets(3)), "pfifo", &[("limit", "100p")]);
    let mut told = Recorder::default();
    let mut held = Vec::new();
    for number in 0..5 {
        link.offer(parcel(number, 1_000), Time::ZERO, &mut told);
        held.push((link.device_backlog().packets, link.backlog().packets));
    }
    assert_eq!(told.0.len(), 5, "each was the discipline's first");
    assert_eq!(held, [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2)]);
    assert_eq!(link.sending().map(|(packet, until)| (packet.number, until.ns())), Some((0, MS)));
    // As one leaves the next comes out of the discipline.
    let left: Vec<_> = advance(&mut link, at(2 * MS), &mut told).iter().map(|d| d.packet.number).collect();
    assert_eq!((left, link.device_backlog().packets, link.backlog().packets), (vec![0, 1], 3, 0));
    assert_eq!(link.sending().map(|(packet, until)| (packet.number, until.ns())), Some((2, 3 * MS)));
    assert_eq!(advance(&mut link, at(10 * MS), &mut told).len(), 3);
    assert_eq!((link.device_backlog().bytes, link.next_event()), (0, Time::NEVER));
    assert!(link.sending().is_none());
}

#[test]
fn of_a_limit_in_bytes_one_packet_may_exceed() {
    for (limit, packets) in [(1, 1), (999, 1), (1_000, 2), (1_001, 2), (2_999, 3), (3_000, 4)] {
        let mut link = link(Some(Limit::Bytes(limit)), "pfifo", &[("limit", "100p")]);
        for number in 0..10 {
            link.offer(parcel(number, 1_000), Time::ZERO, &mut Recorder::default());
        }
        let device = link.device_backlog();
        assert_eq!((device.packets, device.bytes), (packets, u64::from(packets) * 1_000), "{limit} bytes");
    }
}

#[test]
fn overhead_takes_time_and_no_room() {
    let mut link = link(Some(Limit::Bytes(1_500)), "pfifo", &[("limit", "100p")])
        .with_framing(Framing { overhead: 1_000, ..Framing::default() });
    let (delivered, _) = run(&mut link, &[(0, 1_000); 3]);
    assert_eq!(delivered, [(0, 2 * MS, 0), (1, 4 * MS, 2 * MS), (2, 6 * MS, 4 * MS)]);
    (0..3).for_each(|number| link.offer(parcel(number, 1_000), at(3_600_001 * MS), &mut Recorder::default()));
    assert_eq!(link.device_backlog().bytes, 2_000);
}

/// CoDel drops until nobody waits for longer than its target, of the time in its own queue. One packet a millisecond,
/// after some at once that make a standing queue.
#[test]
fn a_law_sees_the_time_in_its_own_queue_only() {
    let codel = [("target", "5ms"), ("interval", "100ms")];
    let waits = |device, standing: usize| {
        let packets: Vec<_> = (0..standing).map(|_| (0, 1_000)).chain((1..5_000).map(|n| (n * MS, 1_000))).collect();
        let (delivered, told) = run(&mut link(device, "codel", &codel), &packets);
        let drops = told.iter().filter(|told| matches!(told, Told::Dropped(..))).count();
        let last = delivered.last().map(|&(_, _, waited)| waited / MS);
        (drops, last.expect("something is delivered"))
    };
    // Nine milliseconds are too many, and within five is as it should be. They are the ring's own: nothing is dropped.
    let (drops, last) = waits(None, 10);
    assert!(drops >= 4 && last <= 5, "{drops} drops, {last} ms");
    assert_eq!(waits(Some(Limit::Packets(16)), 10), (0, 9), "what is recorded has the ring in it");
    // Of 32 packets those beyond the ring's 16 are too many. What is left is within five milliseconds and a full ring.
    let (drops, last) = waits(Some(Limit::Packets(16)), 32);
    assert!(drops >= 11 && (15..=20).contains(&last), "{drops} drops, {last} ms");
}

/// Every discipline with every default, shapers and dialects too: packets come and go at any time.
#[test]
fn a_ring_of_one_packet_is_none() {
    for row in registry::rows() {
        let dialects = row.param("dialect").map(|param| param.kind);
        let dialects = if let Some(Kind::Word(words)) = dialects { words } else { &[""] };
        for &dialect in dialects {
            let written: Vec<_> = (!dialect.is_empty()).then_some(("dialect", dialect)).into_iter().collect();
            is_none(&row.name, &written);
        }
    }
    is_none("cake", &[("bandwidth", "6mbit")]);
}

fn is_none(qdisc: &str, written: &[(&str, &str)]) {
    let mut stream = Stream::named(7, "packets");
    let mut now = 0;
    let packets: Vec<_> = (0..4_000)
        .map(|number| {
            // A load of 110 %, then of 60 %.
            now += stream.below(if number < 2_000 { 1_400_000 } else { 2_600_000 });
            (now, 40 + stream.below(1_461) as u32)
        })
        .collect();
    let [mut none, mut one] = [None, Some(Limit::Packets(1))].map(|device| link(device, qdisc, written));
    assert_eq!(run(&mut none, &packets), run(&mut one, &packets), "{qdisc} {written:?}");
    assert_eq!(none.counts(), one.counts(), "{qdisc}");
}

#[test]
fn a_shaper_paces_a_ring() {
    // CAKE lets 2 Mb/s through on a link of 8 Mb/s: 1000 bytes in 4 ms, and the ring holds one packet at most.
    let mut link = link(Some(Limit::Packets(64)), "cake", &[("bandwidth", "2mbit")]);
    let (delivered, _) = run(&mut link, &[(0, 1_000); 20]);
    assert_eq!(delivered.len(), 20);
    for (index, &(_, at, _)) in delivered.iter().enumerate() {
        assert_eq!(at, MS + 4 * MS * index as u64, "packet {index}");
    }
}

#[test]
#[should_panic(expected = "a device queue has room for a packet")]
fn a_ring_of_no_packet_could_never_send() {
    let _ = link(Some(Limit::Packets(0)), "pfifo", &[]);
}

/// A drop-tail queue of `packets` before a ring of `device` on a link that takes a nanosecond for each byte: which
/// packets leave when, and after how long a wait. One pass over the arrivals, by what must be true of each packet.
fn plainly(packets: usize, device: Limit, arrivals: &[(u64, u32)]) -> Vec<(u64, u64, u64)> {
    // Of those accepted: number, arrival, size, when it came into the ring, and when it left.
    let mut out: Vec<(u64, u64, u64, u64, u64)> = Vec::new();
    for (number, &(now, size)) in (0..).zip(arrivals) {
        if out.iter().filter(|&&(.., into, _)| into > now).count() >= packets {
            continue;
        }
        // It comes into the ring when those before it have, and enough of them have left; it is sent after the last.
        let mut into = out.last().map_or(now, |&(_, _, _, into, _)| into.max(now));
        loop {
            let inside: VecDeque<_> = out.iter().filter(|&&(.., left)| left > into).collect();
            let has_room = match device {
                Limit::Packets(limit) => inside.len() < limit as usize,
                Limit::Bytes(limit) => inside.iter().map(|&&(_, _, size, ..)| size).sum::<u64>() <= limit,
            };
            if has_room {
                break;
            }
            into = inside.front().expect("what has no room holds something").4;
        }
        let starts = out.last().map_or(now, |&(.., left)| left.max(now));
        out.push((number, now, u64::from(size), into, starts + u64::from(size)));
    }
    out.iter().map(|&(number, arrived, size, _, left)| (number, left, left - size - arrived)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_what_a_plain_writing_of_it_is(
        gaps in proptest::collection::vec((0_u64..2_000, 40_u32..1_500, 0_u8..3), 1..200),
        packets in 1_usize..20,
        ring in prop_oneof![(1_u32..30).prop_map(Limit::Packets), (1_u64..30_000).prop_map(Limit::Bytes)],
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = gaps
            .iter()
            .map(|&(gap, size, burst)| {
                // One in three comes with the one before it.
                now += if burst == 0 { 0 } else { gap };
                (now, size)
            })
            .collect();
        let rate = Rate::from_bps(8_000_000_000);
        let limit = format!("{packets}p");
        let qdisc = built("pfifo", &[("limit", limit.as_str())], rate, Stream::named(1, "q"));
        let mut link = Egress::new(rate, qdisc).with_device_queue(ring);
        let (delivered, told) = run(&mut link, &arrivals);
        prop_assert_eq!(&delivered, &plainly(packets, ring, &arrivals));
        let dropped = told.iter().filter(|told| matches!(told, Told::Dropped(..))).count();
        prop_assert_eq!(delivered.len() + dropped, arrivals.len());
    }

    #[test]
    fn every_discipline_conserves_packets_before_a_ring(
        row in 0..registry::rows().len(),
        gaps in proptest::collection::vec((0_u64..2_000_000, 40_u32..1_500), 1..300),
        ring in prop_oneof![(1_u32..30).prop_map(Limit::Packets), (1_u64..30_000).prop_map(Limit::Bytes)],
    ) {
        let mut now = 0;
        let arrivals: Vec<_> = gaps.iter().map(|&(gap, size)| { now += gap; (now, size) }).collect();
        let mut link = link(Some(ring), &registry::rows().nth(row).expect("it is one of them").name, &[]);
        let (delivered, told) = run(&mut link, &arrivals);
        let dropped = told.iter().filter(|told| matches!(told, Told::Dropped(..))).count();
        prop_assert_eq!(delivered.len() + dropped, arrivals.len());
        prop_assert_eq!((link.backlog().packets, link.device_backlog().packets), (0, 0));
        prop_assert!(delivered.windows(2).all(|pair| pair[0].1 < pair[1].1), "one after the other");
    }
}
