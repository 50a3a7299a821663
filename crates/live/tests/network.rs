//! The network between the devices, told what time it is: no device, no clock.

#![cfg(target_os = "linux")]

use base::{Ecn, Span, Stream, Time};
use live::paths::Announced;
use live::{Network, Refused};
use proptest::prelude::*;
use record::{Discard, DropRow, ExchangeRow, QueueRow, Sink};
use scenario::resolve;

fn network(text: &str) -> Network {
    let text = format!("{text}\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n");
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    let resolved = resolve(&text, "network.toml", &[], &read).expect("it makes sense");
    Network::new(resolved.scenario().expect("it has no load to calibrate"), Announced::nothing())
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
    while let Some(leaving) = network.advance(now, &mut Discard) {
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
fn a_driver_that_comes_when_it_is_told_is_never_late() {
    let mut network = network(
        "seed = 7\n[link]\nrate = \"50mbit\"\n[link.qdisc]\nkind = \"pie\"\n[path]\naccess_rate = \"100mbit\"\n\
         rtt = { uniform = [\"10ms\", \"150ms\"] }",
    );
    let mut stream = Stream::named(1, "told");
    let (mut now, mut arrived, mut calls) = (Time::ZERO, 0, 0);
    let mut come = |network: &mut Network, until: Time| {
        while network.due(Span::ZERO) <= until {
            let due = network.due(Span::ZERO);
            let on_time = arrivals(network, due);
            let times: Vec<Time> = on_time.iter().map(|(at, ..)| *at).collect();
            assert!(times.iter().all(|at| *at == due), "called at {due:?}: {times:?}");
            (arrived, calls) = (arrived + on_time.len(), calls + 1);
        }
    };
    for number in 0..4000 {
        now += Span::from_ns(stream.below(250_000));
        come(&mut network, now);
        let port = 1000 + stream.below(40) as u16;
        let size = 40 + stream.below(1461) as u16;
        network.send(&datagram(size, Ecn::NotEct, port, stream.below(2) as usize, number), 0, now).expect("a packet");
    }
    come(&mut network, now + Span::from_secs(1));
    assert!(arrived > 3000, "{arrived}");
    // Every packet has three events.
    assert!(calls < 3 * arrived, "{calls} calls for {arrived} packets");
}

/// Keeps rows.
#[derive(Default)]
struct Rows {
    queue: Vec<QueueRow>,
    drops: Vec<DropRow>,
}

impl Sink for Rows {
    fn exchange(&mut self, _row: &ExchangeRow) {}
    fn queue(&mut self, row: &QueueRow) {
        self.queue.push(*row);
    }
    fn drop(&mut self, row: &DropRow) {
        self.drops.push(*row);
    }
}

#[test]
fn rows_add_up_to_the_window_whenever_the_driver_comes() {
    let run = |every: Span| {
        let mut network = network(
            "duration = \"1s\"\nwarmup = \"250ms\"\ncooldown = \"100ms\"\n[record]\ninterval = \"200ms\"\ndrops = true\n\
             [link]\nrate = \"5mbit\"\n[link.qdisc]\nkind = \"pfifo\"\nlimit = \"20p\"\n[path]\nrtt = \"0s\"",
        );
        let mut rows = Rows::default();
        let mut called = Time::ZERO;
        for number in 0..1000 {
            let now = Time::from_ns(u64::from(number) * 1_000_000);
            while called + every <= now {
                called += every;
                while let Some(leaving) = network.advance(called, &mut rows) {
                    network.give_back(leaving);
                }
            }
            network.send(&datagram(1000, Ecn::NotEct, 1000, 0, number), 0, now).expect("a packet");
        }
        while let Some(leaving) = network.advance(Time::from_ns(2_000_000_000), &mut rows) {
            network.give_back(leaving);
        }
        let forward: Vec<QueueRow> = rows.queue.into_iter().filter(|row| row.direction == 0).collect();
        (forward, rows.drops, network.meters()[0].window().clone(), network.counts(0))
    };
    let (rows, drops, window, counts) = run(Span::from_ms(1));
    let times: Vec<u64> = rows.iter().map(|row| row.time.ns() / 1_000_000).collect();
    assert_eq!(times, [200, 250, 400, 600, 800, 900, 1000]);
    let measured = &rows[2..6];
    // A packet a millisecond for 650 ms, and 5 Mb/s of 1000 bytes are 625 a second.
    assert_eq!(measured.iter().map(|row| row.offered_packets).sum::<u32>(), 650);
    assert_eq!(window.offered, 650);
    assert_eq!(measured.iter().map(|row| u64::from(row.delivered_packets)).sum::<u64>(), window.delivered);
    assert!(window.delivered.abs_diff(625 * 650 / 1000) <= 1, "{}", window.delivered);
    assert_eq!(measured.iter().map(|row| u64::from(row.dropped_packets)).sum::<u64>(), window.dropped_total());
    assert_eq!(drops.len() as u64, counts.dropped_total());
    // A driver that comes now and then changes none of it.
    let late = run(Span::from_ms(30));
    assert_eq!((late.0, late.1), (rows, drops));
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

/// Something that a host could send and should not: a header that says this, and bytes that say that.
fn malice() -> impl Strategy<Value = Vec<u8>> {
    let extension = (prop::sample::select(vec![0_u8, 43, 44, 50, 51, 59, 60, 135, 253]), any::<u8>());
    let chain = prop::collection::vec(extension, 0..12);
    let payload = prop::collection::vec(any::<u8>(), 0..1600);
    let protocol = prop::sample::select(vec![0_u8, 1, 6, 17, 41, 58, 132, 255]);
    // How far the length that a header states is from what there is, and how much of that is cut off in the end.
    let lie = prop_oneof![3 => Just(0_i32), 1 => -80..80_i32, 1 => -70_000..70_000_i32];
    let cut = prop_oneof![3 => Just(0_usize), 1 => 0..80_usize, 1 => 0..4000_usize];
    let v4 = (5_u8..=15, any::<[u8; 3]>(), any::<[u8; 60]>());
    let parts = (any::<bool>(), v4, chain, protocol, payload, lie, cut);
    parts.prop_map(|(is_v6, (words, flags, header), chain, protocol, payload, lie, cut)| {
        let mut packet = if is_v6 { vec![0x60, flags[0], flags[1], 0, 0, 0, protocol, 64] } else { header.to_vec() };
        if is_v6 {
            packet.extend(&header[..32]);
            let mut before = 6;
            for (kind, length) in chain {
                packet[before] = kind;
                before = packet.len();
                packet.extend([protocol, length % 3]);
                packet.extend(&header[..usize::from(length % 3) * 8 + 6]);
            }
        } else {
            packet.truncate(usize::from(words) * 4);
            packet[0] = 0x40 | words;
            // Half of them whole, half of them fragments.
            (packet[6], packet[9]) = (if flags[0] < 128 { 0 } else { flags[1] }, protocol);
        }
        packet.extend(payload);
        let stated = (packet.len() as i32 + lie).clamp(0, 65_535) as u16;
        if is_v6 {
            packet[4..6].copy_from_slice(&stated.saturating_sub(40).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&stated.to_be_bytes());
        }
        packet.truncate(packet.len().saturating_sub(cut));
        packet
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Disciplines that look at flows, hosts and acknowledgements among them.
    #[test]
    fn nothing_that_hosts_send_stops_it(
        packets in prop::collection::vec((malice(), 0..2_usize, 0..400_000_u64), 0..200),
        kind in prop::sample::select(vec![
            "kind = \"cake\"\nack_filter = \"aggressive\"", "kind = \"fq_codel\"", "kind = \"dualpi2\"", "kind = \"red\"",
        ]),
    ) {
        let mut network = network(&format!(
            "[link]\nrate = \"20mbit\"\n[link.qdisc]\n{kind}\n[path]\nrtt = {{ uniform = [\"1ms\", \"20ms\"] }}"
        ));
        let (mut now, mut arrived) = (Time::ZERO, 0);
        let mut refused = [0; 2];
        for (bytes, side, after) in &packets {
            now += Span::from_ns(*after);
            refused[*side] += u64::from(network.send(bytes, *side, now).is_err());
            for (_, _, packet) in arrivals(&mut network, now) {
                // What comes out is what came in, but for the ECN field and IPv4's checksum over it.
                let same = |sent: &[u8]| sent.len() >= packet.len() && sent[12..packet.len()] == packet[12..];
                prop_assert!(packets.iter().any(|(sent, ..)| same(sent)));
                arrived += 1;
            }
            network.assert_conserved();
        }
        arrived += arrivals(&mut network, now + Span::from_secs(10)).len() as u64;
        network.assert_conserved();
        let mut dropped = 0;
        for (side, &refused) in refused.iter().enumerate() {
            prop_assert_eq!(network.ingress(side).malformed, refused);
            prop_assert_eq!(network.held(side), Default::default(), "ten seconds later nothing is held");
            dropped += network.counts(side).dropped_total();
        }
        prop_assert_eq!(arrived + dropped + refused[0] + refused[1], packets.len() as u64);
    }
}
