//! The network between the devices, told what time it is: no device, no clock.

#![cfg(target_os = "linux")]

use base::{Ecn, Span, Stream, Time};
use live::{Network, Refused};
use scenario::resolve;

fn network(text: &str) -> Network {
    let text = format!("{text}\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n");
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    let resolved = resolve(&text, "network.toml", &[], &read).expect("it makes sense");
    Network::new(resolved.scenario().expect("it has no load to calibrate"))
}

/// A UDP datagram of `size` bytes (IP) from port `port`, or to it where it comes from the right.
fn datagram(size: u16, ecn: Ecn, port: u16, side: usize, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, ecn as u8, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 9];
    packet[2..4].copy_from_slice(&size.to_be_bytes());
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    if side == 1 {
        packet.copy_within(12..16, 24 - 4);
        packet[12..24].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1, 0, 9, 0, 0]);
        packet[22..24].copy_from_slice(&port.to_be_bytes());
    }
    packet.resize(usize::from(size).max(32), 0);
    packet[28..32].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Everything that arrives until `now`: when, where, and the packet.
fn arrivals(network: &mut Network, now: Time) -> Vec<(Time, usize, Vec<u8>)> {
    let mut arrived = Vec::new();
    while let Some(leaving) = network.advance(now) {
        let packet = network.bytes(&leaving).to_vec();
        arrived.push((leaving.at, leaving.side, packet));
        network.give_back(leaving);
    }
    arrived
}

#[test]
fn a_packet_arrives_when_the_link_and_the_path_say() {
    let mut network = network(
        "[link]\nrate = \"20mbit\"\nreverse_rate = \"10mbit\"\noverhead = \"38b\"\n\
         [path]\naccess_rate = \"1gbit\"\nrtt = \"40ms\"",
    );
    let start = Time::from_ns(1_000_000);
    for side in [0, 1] {
        network.send(&datagram(1462, Ecn::NotEct, 1000, side, 0), side, start).expect("a packet");
    }
    let arrived = arrivals(&mut network, Time::from_ns(1_000_000_000));
    // Two access links of 11.696 us, half of the round trip, and 1500 bytes on the link: 600 us or 1200 us.
    let expected = [1, 2].map(|rate| start + Span::from_ns(2 * 11_696 + 20_000_000 + rate * 600_000));
    assert_eq!(
        arrived.iter().map(|(at, side, _)| (*at, *side)).collect::<Vec<_>>(),
        [(expected[0], 1), (expected[1], 0)]
    );
    assert_eq!(network.flows(), 1);
    network.assert_conserved();
}

/// 2000 packets of 40 flows at once over a link of 50 Mb/s, called by a driver that comes every `every`.
fn crowd(every: Span) -> Vec<(Time, usize, Vec<u8>)> {
    let mut network = network(
        "seed = 7\n[link]\nrate = \"50mbit\"\n[link.qdisc]\nkind = \"pie\"\necn = true\nlimit = \"300p\"\n\
         [path]\nrtt = { uniform = [\"10ms\", \"150ms\"] }",
    );
    let mut stream = Stream::named(1, "crowd");
    let mut arrived = Vec::new();
    let (mut now, mut called) = (Time::ZERO, Time::ZERO);
    for number in 0..4000 {
        now += Span::from_ns(stream.below(200_000));
        while called + every <= now {
            called += every;
            arrived.extend(arrivals(&mut network, called));
        }
        let ecn = if stream.chance(0.5) { Ecn::Ect0 } else { Ecn::NotEct };
        let (size, side) = (40 + stream.below(1461) as u16, stream.below(2) as usize);
        let port = 1000 + stream.below(40) as u16;
        network.send(&datagram(size, ecn, port, side, number), side, now).expect("a packet");
        network.assert_conserved();
    }
    arrived.extend(arrivals(&mut network, now + Span::from_secs(10)));
    network.assert_conserved();
    assert_eq!((network.held(0), network.held(1)), Default::default(), "ten seconds later nothing is held");
    let dropped: u64 = (0..2).map(|side| network.counts(side).dropped_total()).sum();
    assert_eq!(arrived.len() as u64 + dropped, 4000);
    arrived
}

#[test]
fn a_driver_that_comes_late_bends_nothing() {
    let punctual = crowd(Span::from_us(1));
    assert_eq!(punctual, crowd(Span::from_us(1)));
    assert_eq!(punctual, crowd(Span::from_ms(7)));
}

#[test]
fn flows_keep_their_order() {
    let arrived = crowd(Span::from_us(100));
    for side in [0, 1] {
        let mut last = [None; 40];
        for (_, _, packet) in arrived.iter().filter(|(_, to, _)| *to == side) {
            let at = if side == 1 { 20 } else { 22 };
            let flow = usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]) - 1000);
            let number = Some(u32::from_be_bytes([packet[28], packet[29], packet[30], packet[31]]));
            assert!(last[flow] < number, "flow {flow}");
            last[flow] = number;
        }
    }
}

#[test]
fn a_full_link_carries_its_rate() {
    let mut network =
        network("[link]\nrate = \"30mbit\"\n[link.qdisc]\nkind = \"pfifo\"\nlimit = \"5000p\"\n[path]\nrtt = \"0s\"");
    for number in 0..3000 {
        network.send(&datagram(1000, Ecn::NotEct, 1000, 0, number), 0, Time::ZERO).expect("a packet");
    }
    let arrived = arrivals(&mut network, Time::from_ns(10_000_000_000));
    // A packet takes 8 us on an access link; the link of 30 Mb/s is then busy for 3000 of 800/3 us, without drift.
    assert_eq!(arrived.len(), 3000);
    assert_eq!(arrived.last().map(|(at, ..)| *at), Some(Time::from_ns(8_000 + 3000 * 800_000 / 3 + 8_000)));
}

#[test]
fn what_is_no_packet_is_counted_and_dropped() {
    let mut network = network("[link]\nrate = \"100mbit\"\n[path]\nrtt = \"10ms\"");
    let mut stream = Stream::named(1, "noise");
    let (mut refused, mut now) = (0, Time::ZERO);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..stream.below(300)).map(|_| stream.bits() as u8).collect();
        if stream.chance(0.5) && bytes.len() > 20 {
            // Something that begins as a packet does.
            bytes[0] = 0x45 + stream.below(3) as u8;
            (bytes[2], bytes[3]) = (0, stream.below(256) as u8);
        }
        now += Span::from_us(20);
        refused += u64::from(matches!(network.send(&bytes, 0, now), Err(Refused::Malformed(_))));
        arrivals(&mut network, now);
    }
    // Longer than any buffer.
    assert!(network.send(&datagram(9000, Ecn::NotEct, 1, 0, 0), 0, now).is_err());
    network.assert_conserved();
    assert_eq!(network.ingress(0).malformed, refused + 1);
    assert!(refused > 10_000 && network.counts(0).offered > 1_000, "{refused}");
}
