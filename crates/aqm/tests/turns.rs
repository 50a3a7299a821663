//! What disciplines that serve flows in turn owe each flow: bounds from their papers, held at every step of random
//! traffic, and not by a wide margin. And what losing the oldest packet does to those that are sent.

use crate::common::{Deaf, Parcel, built};
use aqm::{Cause, Egress, Framing, Headers, Qdisc, Tap};
use base::{Ecn, Rate, Stream, Time, maths};
use std::collections::VecDeque;

const RATE: Rate = Rate::from_bps(8_000_000);
/// Bytes a second of that rate.
const CAPACITY: f64 = 1e6;
const LARGEST: u32 = 1500;

fn parcel(number: u64, flow: u64, size: u32) -> Parcel {
    Parcel { number, size, ecn: Ecn::NotEct, flow }
}

fn qdisc(name: &str, written: &[(&str, &str)]) -> Box<dyn Qdisc<Parcel> + Send> {
    built(name, written, RATE, Stream::named(1, "q"))
}

/// How far two flows drifted apart while both waited, at most, in what `weight` counts.
fn greatest_drift(mut qdisc: Box<dyn Qdisc<Parcel> + Send>, weight: fn(u32) -> i64) -> i64 {
    const FLOWS: usize = 4;
    let mut stream = Stream::named(2, "drift");
    let mut waiting = [0_u32; FLOWS];
    // Sent by one more than by the other since both wait: now, and the least and greatest it was.
    let mut drift = [[(0_i64, 0_i64, 0_i64); FLOWS]; FLOWS];
    let mut greatest = 0;
    for number in 0..400_000 {
        let now = Time::from_ns(number);
        // Flows come and go: a quarter of the time each may grow, and otherwise not.
        let flow = stream.below(FLOWS as u64) as usize;
        let is_growing = (number >> 9) >> flow & 3 != 0;
        if is_growing && stream.chance(0.6) {
            // One sends small packets, one large ones, two any.
            let (low, high) = [(40, 100), (1400, LARGEST), (40, LARGEST), (500, 600)][flow];
            let size = low + stream.below(u64::from(high - low) + 1) as u32;
            qdisc.offer(parcel(number, flow as u64, size), now, &mut Deaf);
            waiting[flow] += 1;
            continue;
        }
        let Some(held) = qdisc.take(now, &mut Deaf).packet() else { continue };
        let sender = held.packet.flow as usize;
        for other in (0..FLOWS).filter(|other| *other != sender) {
            let (now, least, most) = &mut drift[sender.min(other)][sender.max(other)];
            if waiting[other] == 0 {
                (*now, *least, *most) = (0, 0, 0);
                continue;
            }
            *now += weight(held.packet.size) * if sender < other { 1 } else { -1 };
            (*least, *most) = ((*least).min(*now), (*most).max(*now));
            greatest = greatest.max(*most - *least);
        }
        waiting[sender] -= 1;
        if waiting[sender] == 0 {
            for other in 0..FLOWS {
                drift[sender.min(other)][sender.max(other)] = (0, 0, 0);
            }
        }
    }
    greatest
}

#[test]
fn turns_by_bytes_keep_flows_within_a_quantum_and_two_packets() {
    // Shreedhar and Varghese 1995, Theorem 4.4: over any time in which both wait, at most the quantum and twice the
    // largest packet. The same reckoning holds where a queue sends first and owes afterwards.
    for (quantum, text) in [(1, "1b"), (100, "100b"), (700, "700b"), (1500, "1500b"), (6000, "6000b")] {
        let bound = quantum + 2 * i64::from(LARGEST);
        let plenty = [("limit", "1000000p"), ("quantum", text)];
        for (name, written) in [("drr", plenty.to_vec()), ("sfq", [&plenty[..], &[("depth", "1000000")]].concat())] {
            let drift = greatest_drift(qdisc(name, &written), i64::from);
            assert!(drift <= bound, "{name} at {quantum}: {drift} beyond {bound}");
            // A quantum's worth at least is sent in one go.
            assert!(drift >= quantum.max(i64::from(LARGEST)), "{name} at {quantum}: only {drift} of {bound} was tried");
        }
    }
}

#[test]
fn turns_by_packets_keep_flows_within_a_packet() {
    let written = [("dialect", "ns2"), ("limit", "10000000p"), ("flows", "1024")];
    assert_eq!(greatest_drift(qdisc("sfq", &written), |_| 1), 1);
}

/// Bursts of packets of five flows: when, whose, how large.
fn bursts() -> Vec<(f64, usize, u32)> {
    let mut stream = Stream::named(3, "bursts");
    let mut arrivals = vec![];
    let mut now_s = 0.0;
    while arrivals.len() < 60_000 {
        let flow = stream.below(5) as usize;
        let count = 1 + stream.below(12);
        let sizes: Vec<u32> = (0..count).map(|_| 40 + stream.below(u64::from(LARGEST - 39)) as u32).collect();
        // Mean load 0.95.
        let bytes: u32 = sizes.iter().sum();
        now_s += -maths::ln(stream.open_unit()) * f64::from(bytes) / CAPACITY / 0.95;
        // On whole nanoseconds, as the engine's clock.
        let at_s = Time::from_secs_f64(now_s).secs_f64();
        arrivals.extend(sizes.into_iter().map(|size| (at_s, flow, size)));
    }
    arrivals
}

/// When a link that serves all waiting flows at once, each at an equal part of its rate, finishes each packet.
fn fluid(arrivals: &[(f64, usize, u32)]) -> Vec<f64> {
    let mut finished = vec![0.0; arrivals.len()];
    let mut queues: [VecDeque<(usize, f64)>; 5] = std::array::from_fn(|_| VecDeque::new());
    let mut now_s = 0.0;
    let mut next = 0;
    loop {
        let active = queues.iter().filter(|queue| !queue.is_empty()).count() as f64;
        let arrival_s = arrivals.get(next).map_or(f64::INFINITY, |(at_s, ..)| *at_s);
        let first =
            queues.iter().filter_map(|queue| queue.front()).map(|(_, left)| *left).fold(f64::INFINITY, f64::min);
        let finish_s = now_s + first * active.max(1.0) / CAPACITY;
        if arrival_s == f64::INFINITY && finish_s == f64::INFINITY {
            return finished;
        }
        let until_s = arrival_s.min(finish_s);
        let served = (until_s - now_s) * CAPACITY / active.max(1.0);
        now_s = until_s;
        for queue in &mut queues {
            if let Some((number, left)) = queue.front_mut() {
                *left -= served;
                // A ten thousandth of a byte is rounding.
                if *left < 1e-4 {
                    finished[*number] = now_s;
                    queue.pop_front();
                }
            }
        }
        if arrival_s <= finish_s {
            let (_, flow, size) = arrivals[next];
            queues[flow].push_back((next, f64::from(size)));
            next += 1;
        }
    }
}

/// How much later than the fluid link a packet leaves, at most, in seconds.
fn greatest_lag(name: &str, written: &[(&str, &str)]) -> f64 {
    let arrivals = bursts();
    let finished = fluid(&arrivals);
    let mut egress = Egress::new(RATE, qdisc(name, written));
    let mut greatest = f64::NEG_INFINITY;
    let mut delivered = 0;
    let mut advance = |egress: &mut Egress<Parcel>, until: Time| {
        while egress.next_event() <= until && egress.next_event().is_set() {
            if let Some(delivery) = egress.advance(until, &mut Deaf) {
                greatest = greatest.max(delivery.at.secs_f64() - finished[delivery.packet.number as usize]);
                delivered += 1;
            }
        }
    };
    for (number, (at_s, flow, size)) in arrivals.iter().enumerate() {
        let now = Time::from_secs_f64(*at_s);
        advance(&mut egress, now);
        egress.offer(parcel(number as u64, *flow as u64, *size), now, &mut Deaf);
    }
    advance(&mut egress, Time::NEVER);
    assert_eq!(delivered, arrivals.len());
    greatest
}

#[test]
fn fair_queueing_is_at_most_one_packet_behind_the_fluid_link() {
    // Parekh and Gallager 1993, Theorem 1: L_max / r. A microsecond for rounding: a byte takes one.
    let bound = f64::from(LARGEST) / CAPACITY;
    let lag = greatest_lag("fq", &[("limit", "1000000p")]);
    assert!(lag <= bound + 1e-6, "{lag} beyond {bound}");
    assert!(lag > 0.5 * bound, "the bound was tried: {lag} of {bound}");
    // A queue in order of arrival is not.
    let in_order = greatest_lag("pfifo", &[("limit", "1000000p")]);
    assert!(in_order > 10.0 * bound, "{in_order}");
}

struct Lost([u64; 2]);

impl Tap<Parcel> for Lost {
    fn dropped(&mut self, packet: Parcel, _cause: Cause, _now: Time) {
        self.0[packet.flow as usize] += 1;
    }
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {}
}

impl Headers<Parcel> for Lost {}

/// A flow that sends `share` of what a link can carry meets one that sends twice what it can, packets of 1000 bytes
/// with 38 of framing. Returns what each lost and was delivered, and the longest wait of the first, in packets.
fn flood(name: &str, written: &[(&str, &str)], share: f64) -> (Lost, [u64; 2], f64) {
    let service_s = 1038.0 / CAPACITY;
    let mut egress =
        Egress::new(RATE, qdisc(name, written)).with_framing(Framing { overhead: 38, ..Framing::default() });
    let mut next_s = [0.0, 0.0003];
    let gaps_s = [service_s / share, service_s / 2.0];
    let (mut lost, mut delivered, mut longest_s) = (Lost([0; 2]), [0; 2], 0.0_f64);
    for number in 0..200_000 {
        let flow = usize::from(next_s[1] < next_s[0]);
        let now = Time::from_secs_f64(next_s[flow]);
        next_s[flow] += gaps_s[flow];
        while egress.next_event() <= now {
            if let Some(delivery) = egress.advance(now, &mut lost) {
                delivered[delivery.packet.flow as usize] += 1;
                if delivery.packet.flow == 0 {
                    longest_s = longest_s.max(delivery.waited.secs_f64());
                }
            }
        }
        egress.offer(parcel(number, flow as u64, 1000), now, &mut lost);
    }
    egress.assert_conserved();
    (lost, delivered, longest_s / service_s)
}

#[test]
fn a_flow_below_its_share_does_not_notice_a_flood() {
    // 0.45 is below its half. It has one packet at a time: where turns are by packets of equal size, one of the flood
    // goes first, beside what is left of the one on the link. With a quantum of more than a packet the bound is that of
    // a server with latency (Stiliadis and Varma 1998): (3 * both quanta - 2 * its own) + a packet at half the rate,
    // less its own transmission: 4 * 1.514 + 2 - 1. A queue that sends first and owes afterwards has turns of the same
    // lengths.
    for (name, written, bound) in [
        ("fq", vec![("limit", "50p")], 2.0),
        ("fq", vec![("limit", "50p"), ("dialect", "ns2")], 2.0),
        ("drr", vec![("limit", "50p"), ("quantum", "1000b")], 2.0),
        ("drr", vec![("limit", "50p")], 7.06),
        ("sfq", vec![("limit", "50p")], 7.06),
    ] {
        let (lost, delivered, longest) = flood(name, &written, 0.45);
        assert_eq!(lost.0[0], 0, "{name} {written:?}");
        assert!(longest <= bound + 1e-6, "{name} {written:?}: a wait of {longest} packets");
        // The flood gets all the rest: 0.55 to 0.45, but for the 50 packets still held.
        let expected = delivered[0] as f64 * 0.55 / 0.45;
        assert!((delivered[1] as f64 - expected).abs() <= 60.0, "{name} {written:?}: {delivered:?}");
    }
    // Without turns it pays for the flood.
    let (lost, _, longest) = flood("pfifo", &[("limit", "50p")], 0.45);
    assert!(lost.0[0] > 1000 && longest > 45.0, "{longest}");
}

/// Greatest and least wait in packets, behind a queue of 100 that 2 packets reach for each that leaves.
fn waits(drop: &str) -> (f64, f64) {
    let service_s = 1000.0 / CAPACITY;
    let mut egress = Egress::new(RATE, qdisc("pfifo", &[("limit", "100p"), ("drop", drop)]));
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for number in 0..20_000 {
        let now = Time::from_secs_f64(number as f64 * service_s / 2.0);
        while egress.next_event() <= now {
            if let Some(delivery) = egress.advance(now, &mut Deaf)
                && number > 1000
            {
                let wait = delivery.waited.secs_f64() / service_s;
                (least, most) = (least.min(wait), most.max(wait));
                // It is one of the newest hundred, and the one on the link.
                assert!(drop == "tail" || number - delivery.packet.number <= 100 + 2, "{delivery:?} at {number}");
            }
        }
        egress.offer(parcel(number, 0, 1000), now, &mut Deaf);
    }
    (least, most)
}

#[test]
fn losing_the_oldest_makes_those_that_are_sent_younger() {
    // From the tail a packet that enters waits for a hundred before it. From the head the hundred that are held are the
    // newest ones, and a hundred come in half that time. A packet more or less is where in a service it arrived.
    let (least, most) = waits("tail");
    assert!(least >= 99.0 && most <= 100.0 + 1e-6, "{least} to {most}");
    let (least, most) = waits("head");
    assert!(least >= 49.0 && most <= 50.5, "{least} to {most}");
}
