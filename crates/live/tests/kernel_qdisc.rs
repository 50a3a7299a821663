//! The kernel's disciplines in place of ours: what goes in and comes out is accounted for packet by packet. Where
//! namespaces or TUN devices may not be made, what needs them is left out with the reason.

#![cfg(target_os = "linux")]

mod left_out;

use aqm::{Backlog, Cause};
use base::{Ecn, Rate, Span, Time};
use left_out::left_out;
use live::paths::Announced;
use live::{Epoch, KernelLink, KernelSpec, Network, Passage, Real, Router, Statistics, Tun, wire};
use record::Discard;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use scenario::{Family, Resolved, resolve};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicBool;

fn scenario() -> Resolved {
    let text = "duration = \"10s\"\nwarmup = \"0s\"\n[link]\nrate = \"8mbit\"\n[link.qdisc]\nkind = \"bfifo\"\n\
                limit = \"10000b\"\n[path]\naccess_rate = \"1gbit\"\nrtt = \"10ms\"\n\
                [[traffic]]\nkind = \"bulk\"\nflows = 1\n";
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    resolve(text, "kernel_qdisc.toml", &[], &read).expect("it makes sense")
}

/// A UDP datagram of 1000 bytes from `side` to the other one.
fn datagram(side: u8, port: u16, number: u16, ecn: Ecn, hops: u8) -> Vec<u8> {
    let mut packet = vec![0x45, ecn as u8, 3, 232, 0, 0, 0, 0, hops, 17, 0, 0, 10, 128 * side, 0, 1];
    packet.extend([10, 128 * (1 - side), 0, 1]);
    packet[4..6].copy_from_slice(&number.to_be_bytes());
    let words = packet.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend([0, 9, 3, 212, 0, 0]);
    packet.resize(1000, 0);
    packet
}

/// What stands in for the kernel: one line of ten packets that are sent at 8 Mb/s, one millisecond each, of which the
/// last is lost where there is no room and the third of all is lost at the head; the fifth is marked.
#[derive(Default)]
struct Model {
    line: VecDeque<Vec<u8>>,
    free_at: Time,
    told: Statistics,
    seen: u64,
}

impl Model {
    fn offer(&mut self, packet: Vec<u8>) {
        self.seen += 1;
        if self.line.len() == 10 {
            self.told.dropped[Cause::TAIL.index()] += 1;
            return;
        }
        self.line.push_back(packet);
    }

    /// What it lets go of by `now`, and when.
    fn next(&mut self, now: Time) -> Option<Vec<u8>> {
        while self.free_at <= now {
            let mut packet = self.line.pop_front()?;
            let number = u16::from_be_bytes([packet[4], packet[5]]);
            if number == 2 {
                self.told.dropped[Cause::EARLY.index()] += 1;
                continue;
            }
            if number == 4 {
                wire::set_ecn(&mut packet, Ecn::Ce);
                self.told.marked[Cause::EARLY.index()] += 1;
            }
            // A router between has counted a hop.
            packet[8] -= 1;
            self.free_at = now + Span::from_ms(1);
            return Some(packet);
        }
        None
    }
}

#[test]
fn losses_waits_and_marks_are_those_of_each_packet() {
    for kind in ["pie", "fq_codel"] {
        let resolved = scenario();
        let scenario = resolved.scenario().expect("it has no load to calibrate");
        let mut network = Network::new(scenario, Announced::nothing());
        let passage = || Passage::new(kind, Rate::from_bps(8_000_000), 0);
        network.through_kernel(vec![passage(), passage()]);
        for number in 0..20 {
            network.send(&datagram(0, 7, number, Ecn::Ect0, 64), 0, Time::ZERO).expect("there is room");
        }
        let mut model = Model::default();
        let mut arrived = Vec::new();
        for us in 0..40_000 {
            let now = Time::ZERO + Span::from_us(us);
            while let Some(leaving) = network.advance(now, &mut Discard) {
                if leaving.is_for_kernel {
                    model.offer(network.bytes_for_kernel(&leaving).into_owned());
                    network.enter_kernel(leaving, now);
                } else {
                    arrived.push(network.bytes(&leaving).to_vec());
                    network.give_back(leaving);
                }
            }
            while let Some(packet) = model.next(now) {
                network.leave_kernel(&packet, 0, now, &mut Discard);
            }
            if us % 10_000 == 0 {
                let bytes = 1000 * model.line.len() as u64;
                model.told.backlog = Backlog { packets: model.line.len() as u32, bytes };
                network.tell(model.told, 0, now, &mut Discard);
            }
            network.assert_conserved();
            assert!(network.waiting(0) <= network.held(0).within, "{kind}: what is lost does not wait");
        }
        network.tell(model.told, 0, Time::ZERO + Span::from_ms(40), &mut Discard);
        network.assert_conserved();
        // They come 8 us apart, so that the line is full with the eleventh, and nine are lost; and the third.
        assert_eq!(model.seen, 20);
        let counts = network.counts(0);
        assert_eq!((counts.offered, counts.delivered), (20, 10), "{kind}");
        assert_eq!((counts.dropped[Cause::TAIL.index()], counts.dropped[Cause::EARLY.index()]), (9, 1), "{kind}");
        assert_eq!((counts.marked_total(), network.held(0).within), (1, 0), "{kind}");
        let expected: Vec<Vec<u8>> = (0..11)
            .filter(|number| *number != 2)
            .map(|number| {
                let mut packet = datagram(0, 7, number, Ecn::Ect0, 64);
                if number == 4 {
                    wire::set_ecn(&mut packet, Ecn::Ce);
                }
                packet
            })
            .collect();
        assert_eq!(arrived, expected, "{kind}: as they were sent, but for the mark");
        // The k-th to leave leaves at k ms after the first; it came 8 us after the one before it, the lost one between.
        let waits = [0, 1, 3, 4, 5, 6, 7, 8, 9, 10].iter().enumerate().map(|(k, came)| 1000 * k as u64 - 8 * came);
        let mean = waits.sum::<u64>() as f64 * 1e-6 / 10.0;
        let found = network.meters()[0].window().wait_mean_s().expect("ten");
        // The model looks at its clock once a microsecond.
        assert!((found - mean).abs() < 1e-6, "{kind}: {found} {mean}");
        assert_eq!(
            network.passages().expect("they are there").iter().map(Passage::missing).collect::<Vec<_>>(),
            [0, 0]
        );
    }
}

#[test]
fn what_never_went_in_is_dropped_and_what_is_not_forwarded_goes_past() {
    let resolved = scenario();
    let mut network = Network::new(resolved.scenario().expect("it has no load to calibrate"), Announced::nothing());
    let passage = || Passage::new("bfifo", Rate::from_bps(8_000_000), 0);
    network.through_kernel(vec![passage(), passage()]);
    network.leave_kernel(&datagram(0, 7, 1, Ecn::NotEct, 64), 0, Time::ZERO, &mut Discard);
    network.leave_kernel(&[0x45, 0, 0], 0, Time::ZERO, &mut Discard);
    assert_eq!(network.passages().expect("they are there")[0].unknown(), 2);
    let mut group = datagram(0, 7, 1, Ecn::NotEct, 64);
    group[16..20].copy_from_slice(&[224, 0, 0, 22]);
    network.send(&group, 0, Time::ZERO).expect("there is room");
    let leaving = network.advance(Time::ZERO + Span::from_secs(1), &mut Discard).expect("it arrives");
    assert!(!leaving.is_for_kernel);
    assert_eq!(network.bytes(&leaving), group);
    network.give_back(leaving);
    assert_eq!((network.passages().expect("they are there")[0].past(), network.counts(0).delivered), (1, 1));
    network.assert_conserved();
}

/// Two links in a row, the kernel's both: the third packet is lost at the first, which marks the fifth; the second has
/// another model, which marks and loses the same if it sees them.
#[test]
fn a_packet_goes_through_the_kernel_at_each_link_of_its_route() {
    let text = "duration = \"10s\"\nwarmup = \"0s\"\n[path]\naccess_rate = \"1gbit\"\nrtt = \"10ms\"\n\
                [links.near]\nrate = \"8mbit\"\ndelay = \"2ms\"\n[links.far]\nrate = \"8mbit\"\n\
                [[traffic]]\nkind = \"bulk\"\nflows = 1\nroute = [\"near\", \"far\"]\n";
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    let resolved = resolve(text, "kernel_qdisc.toml", &[], &read).expect("it makes sense");
    let mut network = Network::new(resolved.scenario().expect("it has no load to calibrate"), Announced::nothing());
    let passage = || Passage::new("codel", Rate::from_bps(8_000_000), 0);
    network.through_kernel((0..4).map(|_| passage()).collect());
    let sent: Vec<Vec<u8>> = (0..8).map(|number| datagram(0, 7, number, Ecn::Ect0, 64)).collect();
    for packet in &sent {
        network.send(packet, 0, Time::ZERO).expect("there is room");
    }
    let (near, far) = (0, 2);
    let mut models = [Model::default(), Model::default()];
    let (mut arrived, mut seen_by_far) = (Vec::new(), Vec::new());
    for us in 0..40_000 {
        let now = Time::ZERO + Span::from_us(us);
        while let Some(leaving) = network.advance(now, &mut Discard) {
            if leaving.is_for_kernel {
                let port = network.port_of(&leaving);
                let bytes = network.bytes_for_kernel(&leaving).into_owned();
                if port == far {
                    seen_by_far.push((now, bytes.clone()));
                }
                models[port / 2].offer(bytes);
                network.enter_kernel(leaving, now);
            } else {
                arrived.push(network.bytes(&leaving).to_vec());
                network.give_back(leaving);
            }
        }
        for port in [near, far] {
            let model = &mut models[port / 2];
            while let Some(packet) = model.next(now) {
                network.leave_kernel(&packet, port, now, &mut Discard);
            }
            if us % 10_000 == 0 {
                let bytes = 1000 * model.line.len() as u64;
                model.told.backlog = Backlog { packets: model.line.len() as u32, bytes };
                network.tell(model.told, port, now, &mut Discard);
            }
        }
        network.assert_conserved();
    }
    let marked = |number: u16| datagram(0, 7, number, if number == 4 { Ecn::Ce } else { Ecn::Ect0 }, 64);
    let expected: Vec<Vec<u8>> = [0, 1, 3, 4, 5, 6, 7].map(marked).into();
    assert_eq!(
        seen_by_far.iter().map(|(_, packet)| packet.clone()).collect::<Vec<_>>(),
        expected,
        "a mark is seen there"
    );
    assert_eq!(arrived, expected, "as they were sent, but for the mark");
    // The first waits for nobody: 5 ms of its round trip, 8 us on the access link, a millisecond on the link, its 2 ms.
    let first = seen_by_far[0].0.since(Time::ZERO);
    assert!(first >= Span::from_us(8_008) && first <= Span::from_us(8_010), "{first:?}");
    let counts = network.counts(0);
    assert_eq!((counts.offered, counts.delivered, counts.dropped_total(), counts.marked_total()), (8, 7, 1, 1));
}

/// The end of a pair of sockets that carries packets as a TUN device's file does.
fn port() -> io::Result<(Tun, rustix::fd::OwnedFd)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (ours, hosts) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((Tun::from_fd(ours, "hosts"), hosts))
}

fn spec(qdisc: &str) -> KernelSpec {
    let lines = ["forward", "reverse"].iter().flat_map(|dev| {
        [
            format!("tc qdisc add dev {dev} root handle 1: htb default 1"),
            format!("tc class add dev {dev} parent 1: classid 1:1 htb rate 8mbit burst 1 cburst 1 quantum 1500"),
            format!("tc qdisc add dev {dev} parent 1:1 handle 10: {qdisc}"),
        ]
    });
    let kinds = [("bfifo", ""), ("htb", ""), ("tbf", "rate 1mbit burst 2000 limit 2000"), ("nosuch", "")];
    let kinds = kinds.iter().map(|(name, words)| ((*name).to_owned(), (*words).to_owned()));
    KernelSpec { lines: lines.collect(), kinds: kinds.collect() }
}

/// Sets the kernel up, or says why that is left out.
fn open(name: &str, spec: KernelSpec) -> Option<(KernelLink, [Tun; 2])> {
    let is_missing = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound | io::ErrorKind::Unsupported)
    };
    match KernelLink::open(spec, Family::Ipv4) {
        Ok(found) => Some(found),
        Err(error) if is_missing(&error) => {
            left_out(name, error);
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

#[test]
fn a_fifo_of_the_kernels_holds_what_fits_and_sends_at_its_rate() {
    let name = "a_fifo_of_the_kernels_holds_what_fits_and_sends_at_its_rate";
    let Some((link, devices)) = open(name, spec("bfifo limit 10000")) else { return };
    let resolved = scenario();
    let scenario = resolved.scenario().expect("it has no load to calibrate");
    let (left, left_hosts) = port().expect("sockets");
    let (right, right_hosts) = port().expect("sockets");
    let sent: Vec<Vec<u8>> = (0..30).map(|number| datagram(0, 7, number, Ecn::Ect0, 1 + number as u8 % 3)).collect();
    for packet in &sent {
        rustix::net::send(&left_hosts, packet, SendFlags::empty()).expect("there is room");
    }
    // In reverse one alone, which waits for nobody.
    let back = datagram(1, 9, 77, Ecn::NotEct, 64);
    rustix::net::send(&right_hosts, &back, SendFlags::empty()).expect("there is room");
    let clock = Real::since(Epoch::after(Span::ZERO)).expect("any thread may be punctual");
    let mut router = Router::new(scenario, [left, right], clock, Announced::nothing(), None);
    router.through_kernel(scenario, vec![(link, devices)]);
    router.run(Time::ZERO + Span::from_ms(200), &AtomicBool::new(false)).expect("the devices are there");
    let report = router.report();
    let [forward, reverse] = &report.directions;
    assert_eq!((reverse.egress.offered, reverse.egress.delivered), (1, 1));
    assert_eq!(forward.egress.offered, 30);
    // Ten in the queue and one on its way. A router that was interrupted while it handed thirty packets over would let
    // more through, one a millisecond.
    let delivered = forward.egress.delivered;
    assert!((11..30).contains(&delivered), "{delivered}");
    assert_eq!(forward.egress.dropped[Cause::TAIL.index()], 30 - delivered);
    assert_eq!(forward.held.within, 0);
    let mut packet = [0; 2048];
    let mut arrived = Vec::new();
    while let Ok((size, _)) = rustix::net::recv(&right_hosts, &mut packet, RecvFlags::empty()) {
        arrived.push(packet[..size].to_vec());
    }
    assert_eq!(arrived[..11], sent[..11], "as they were sent, hops and all");
    assert_eq!(arrived.len() as u64, delivered);
    let (size, _) = rustix::net::recv(&left_hosts, &mut packet, RecvFlags::empty()).expect("it came");
    assert_eq!(packet[..size], back);
    // The k-th waits k ms, and nobody less: the shaper is never early by more than its burst, a byte, and its clock.
    let mean = forward.meter.window().wait_mean_s().expect("eleven");
    assert!(mean > 5.0e-3 - 0.1e-3, "{mean}");
    let kernel = router.kernel().expect("the disciplines are the kernel's");
    assert_eq!((&kernel["missing"][0], &kernel["missing"][1]), (&0.into(), &0.into()), "{kernel}");
    assert_eq!((&kernel["unknown"][0], &kernel["unknown"][1]), (&0.into(), &0.into()), "it sends nothing of its own");
    assert_eq!(kernel["qdiscs"][0][1]["drops"], 30 - delivered, "{kernel}");
    assert_eq!(kernel["qdiscs"][0][1]["bytes"], 1000 * delivered, "sizes are those of IP packets: {kernel}");
}

#[test]
fn a_discipline_that_the_kernel_has_not_is_named_with_those_that_it_has() {
    let name = "a_discipline_that_the_kernel_has_not_is_named_with_those_that_it_has";
    if open(name, spec("bfifo limit 10000")).is_none() {
        return;
    }
    let error = KernelLink::open(spec("nosuch limit 3"), Family::Ipv4).err().expect("there is no such discipline");
    let said = error.to_string();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{said}");
    assert!(said.contains("has no nosuch; it has bfifo, htb"), "{said}");
    let error = KernelLink::open(spec("bfifo limit much"), Family::Ipv4).err().expect("that is no limit");
    assert_ne!(error.kind(), io::ErrorKind::Unsupported, "{error}");
}
