//! A link whose rate is a trace's: worked out by hand, and against a plain reading of what mm-link does.

use crate::common::{Deaf, Parcel, built};
use aqm::{Egress, Framing, Trace};
use base::{Ecn, Rate, Span, Stream, Time};
use std::collections::VecDeque;

fn link(at_ms: &[u32], qdisc: &str, written: &[(&str, &str)]) -> Egress<Parcel> {
    let trace = Trace::new(at_ms.to_vec()).expect("it is a trace");
    let rate = trace.rate();
    Egress::traced(trace, built(qdisc, written, rate, Stream::named(1, "q")))
}

fn parcel(number: u64, size: u32) -> Parcel {
    Parcel { number, size, ecn: Ecn::NotEct, flow: 1 }
}

/// What comes out of `link` for packets of these instants, in microseconds, and sizes: which, when, and after how long
/// a wait, in microseconds.
fn delivered(mut link: Egress<Parcel>, packets: &[(u64, u32)]) -> Vec<(u64, u64, u64)> {
    let mut out = Vec::new();
    let end = Time::ZERO + Span::from_secs(3_600);
    let mut packets = (0..).zip(packets).peekable();
    loop {
        let next = packets.peek().map_or(Time::NEVER, |(_, (at, _))| Time::ZERO + Span::from_us(*at));
        if link.next_event() <= next.min(end) {
            if let Some(delivery) = link.advance(link.next_event(), &mut Deaf) {
                out.push((delivery.packet.number, delivery.at.ns() / 1_000, delivery.waited.ns() / 1_000));
            }
            link.assert_conserved();
        } else if let Some((number, (_, size))) = packets.next() {
            link.offer(parcel(number, *size), next, &mut Deaf);
        } else {
            return out;
        }
    }
}

fn fifo(at_ms: &[u32]) -> Egress<Parcel> {
    link(at_ms, "pfifo", &[("limit", "1000p")])
}

#[test]
fn an_opportunity_delivers_1500_bytes() {
    // Three are there at 1 ms; opportunities at 2, 5 and 10 ms, and then at 12 ms.
    let packets = [(1_000, 1_500), (1_000, 1_500), (1_000, 1_500), (10_500, 1_500)];
    let expected = [(0, 2_000, 1_000), (1, 5_000, 4_000), (2, 10_000, 9_000), (3, 12_000, 1_500)];
    assert_eq!(delivered(fifo(&[2, 5, 10]), &packets), expected);
}

#[test]
fn small_packets_share_one_and_large_ones_span_some() {
    // At 2 ms: 600, 600 and 300 of 1000 bytes; at 5 ms the other 700, and 800 of 3200 bytes; at 10 ms 1500 of them; at
    // 12 ms the last 900, and all of a packet of 40. A wait ends when the first byte passes.
    let packets = [600, 600, 1_000, 3_200, 40].map(|size| (1_000, size));
    let expected = [(0, 2_000, 1_000), (1, 2_000, 1_000), (2, 5_000, 1_000), (3, 12_000, 4_000), (4, 12_000, 11_000)];
    assert_eq!(delivered(fifo(&[2, 5, 10]), &packets), expected);
}

#[test]
fn what_is_left_of_an_opportunity_is_lost() {
    // The second comes when 1460 bytes of the opportunity at 2 ms have passed unused, the third exactly at one.
    let packets = [(1_000, 40), (2_500, 40), (10_000, 40)];
    assert_eq!(delivered(fifo(&[2, 5, 10]), &packets), [(0, 2_000, 1_000), (1, 5_000, 2_500), (2, 12_000, 2_000)]);
}

#[test]
fn opportunities_at_one_instant_deliver_one_after_the_other() {
    let packets = [1_500, 1_000, 1_000, 1_500].map(|size| (0, size));
    // 4500 bytes at 3 ms: the last packet has 1000 of its 1500 there, and the others at 6 ms.
    assert_eq!(
        delivered(fifo(&[3, 3, 3]), &packets),
        [(0, 3_000, 3_000), (1, 3_000, 3_000), (2, 3_000, 3_000), (3, 6_000, 3_000)]
    );
}

#[test]
fn overhead_takes_its_part_of_an_opportunity() {
    let packets = [(0, 1_462), (0, 1_463)];
    // 1462 and 38 bytes are an opportunity; 1463 and 38 are one byte more.
    let ends: Vec<u64> = delivered(fifo(&[1]).with_framing(Framing { overhead: 38, ..Framing::default() }), &packets)
        .iter()
        .map(|&(_, at, _)| at)
        .collect();
    assert_eq!(ends, [1_000, 3_000]);
}

/// What mm-link does, by opportunities: each takes from the packet in transit and then from the queue until its bytes
/// are used up or nothing waits. Which packet leaves when, in microseconds.
fn plainly(at_ms: &[u32], packets: &[(u64, u32)], end_us: u64) -> Vec<(u64, u64)> {
    let length = u64::from(*at_ms.last().expect("it is a trace")) * 1_000;
    let mut out = Vec::new();
    let mut queue: VecDeque<(u64, u32)> = VecDeque::new();
    let mut coming = (0..).zip(packets).peekable();
    for round in 0.. {
        for &at in at_ms {
            let now = round * length + u64::from(at) * 1_000;
            if now > end_us {
                return out;
            }
            while let Some((number, (_, size))) = coming.next_if(|(_, (at, _))| *at < now) {
                queue.push_back((number, *size));
            }
            let mut bytes = 1_500;
            while bytes > 0 {
                let Some((number, left)) = queue.front_mut() else { break };
                let passes = bytes.min(*left);
                bytes -= passes;
                *left -= passes;
                if *left == 0 {
                    out.push((*number, now));
                    queue.pop_front();
                }
            }
        }
    }
    out
}

#[test]
fn it_is_what_mm_link_does() {
    for seed in 0..40 {
        let mut stream = Stream::named(seed, "trace");
        // Bursts of opportunities, and gaps; load from a tenth to beyond what there is.
        let mut at = 0;
        let at_ms: Vec<u32> = (0..50)
            .map(|_| {
                at += if stream.chance(0.4) { 0 } else { stream.below(8) as u32 };
                at
            })
            .chain([200])
            .collect();
        let mean_us = 300 << stream.below(7);
        let mut now = 0;
        let packets: Vec<(u64, u32)> = (0..900)
            .map(|_| {
                now += stream.below(2 * mean_us);
                (now, 40 + stream.below(1_461) as u32)
            })
            .collect();
        let limit = [("limit", "1000p")];
        let ours: Vec<_> = delivered(link(&at_ms, "pfifo", &limit), &packets).iter().map(|d| (d.0, d.1)).collect();
        assert_eq!(ours.len(), packets.len(), "all come out in an hour");
        assert_eq!(ours, plainly(&at_ms, &packets, 3_600_000_000), "seed {seed}");
    }
}

#[test]
fn a_law_and_a_shaper_live_with_it() {
    // CoDel drops at departure; cake shapes to 2 Mb/s a link that could do 12.
    let packets: Vec<(u64, u32)> = (0..4_000).map(|number| (number * 500, 1_500)).collect();
    let codel = delivered(link(&[1], "codel", &[]), &packets);
    // Two seconds of packets at twice the rate keep each of 2000 opportunities busy but the one at 0 ms.
    assert!((1_999..4_000).contains(&codel.len()), "{} of 4000", codel.len());
    let cake = delivered(link(&[1], "cake", &[("bandwidth", "2mbit")]), &packets);
    // Two seconds of packets at 24 Mb/s, of which 2 Mb/s pass: 333 while they come, and what waits then, less what was
    // dropped. From one to the next are 6 ms in the mean.
    let (first, last) = (cake[0].1, cake[cake.len() - 1].1);
    let rate = Rate::from_bps((cake.len() as u64 - 1) * 1_500 * 8 * 1_000_000 / (last - first));
    assert!((1_990_000..=2_010_000).contains(&rate.bps()), "{rate:?}");
}
