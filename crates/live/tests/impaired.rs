//! What the path loses and holds back, and links whose rate is a trace's, without a device and without a clock.

#![cfg(target_os = "linux")]

use base::Time;
use live::Network;
use live::paths::Announced;
use record::Discard;
use scenario::resolve;

fn network(text: &str) -> Network {
    let text = format!("{text}\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n");
    let read = |name: &str| if name == "a.trace" { Ok("2\n5\n10\n".to_owned()) } else { Err("no file".to_owned()) };
    let resolved = resolve(&text, "network.toml", &[], &read).expect("it makes sense");
    Network::new(resolved.scenario().expect("it has no load to calibrate"), Announced::nothing())
}

/// A UDP datagram of `size` bytes (IP) from the left, or from the right.
fn datagram(size: u16, side: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 4, 0];
    packet[2..4].copy_from_slice(&size.to_be_bytes());
    if side == 1 {
        packet[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
    }
    packet.resize(usize::from(size), 0);
    packet
}

/// When what arrives until `now` does, in microseconds.
fn arrivals_us(network: &mut Network, now: Time) -> Vec<u64> {
    let mut arrived = Vec::new();
    while let Some(leaving) = network.advance(now, &mut Discard) {
        arrived.push(leaving.at.ns() / 1_000);
        network.give_back(leaving);
    }
    arrived
}

const SECOND: Time = Time::from_ns(1_000_000_000);

#[test]
fn what_the_path_loses_gives_its_buffer_back() {
    let mut network = network("[path]\nloss = 0.25\nreverse_loss = 0");
    let n = 20_000_u64;
    for number in 0..n {
        let now = Time::from_ns(number * 10_000);
        network.send(&datagram(100, 0), 0, now).expect("a buffer");
        network.send(&datagram(100, 1), 1, now).expect("a buffer");
        arrivals_us(&mut network, now);
        network.assert_conserved();
    }
    let lost = network.ingress(0).lost as f64;
    let error = 4.0 * (n as f64 * 0.25 * 0.75).sqrt();
    assert!((lost - 0.25 * n as f64).abs() < error, "{lost} lost of {n}");
    assert_eq!((network.ingress(1).lost, network.counts(1).offered + network.held(1).before), (0, n));
}

#[test]
fn what_is_held_back_comes_later() {
    let mut network = network(
        "link = { rate = \"1gbit\" }\n[path]\nrtt = \"20ms\"\naccess_rate = \"1gbit\"\n\
         reorder = { share = 1, delay = \"5ms\" }\nreverse_reorder = { share = 0 }",
    );
    for side in [0, 1] {
        network.send(&datagram(125, side), side, Time::ZERO).expect("a buffer");
    }
    // Three links of 1 us each and 10 ms; forward 5 ms more.
    assert_eq!(arrivals_us(&mut network, SECOND), [10_003, 15_003]);
}

#[test]
fn packets_come_at_the_opportunities_of_the_trace() {
    let mut network = network("link = { trace = \"a.trace\" }\n[path]\nrtt = \"0s\"\naccess_rate = \"1gbit\"");
    for _ in 0..4 {
        network.send(&datagram(1_000, 0), 0, Time::ZERO).expect("a buffer");
    }
    // 1500 bytes at 2, 5 and 10 ms: one and a half of them each; 8 us on the access link, also of two at once.
    assert_eq!(arrivals_us(&mut network, SECOND), [2_008, 5_008, 5_016, 10_008]);
    network.assert_conserved();
}
