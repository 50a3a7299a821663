//! Real hosts on both sides of the router: what they see of the link. Left out, with the reason, where namespaces or
//! TUN devices may not be made.

#![cfg(target_os = "linux")]

mod bed;
#[path = "../left_out/mod.rs"]
mod left_out;

use bed::{Bed, INTERFACE, V4, V6, ping, scenario};
use left_out::left_out;
use live::Report;
use rustix::net::{self, AddressFamily, RecvFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

/// Says that the process runs in a user namespace that was made for it.
const WITHIN: &str = "AQMLAB_TEST_WITHIN";

/// Does `test` with hosts and a router over the scenario `text`; in a user namespace of its own where this user is not
/// root.
fn where_it_can(name: &str, text: &str, test: impl FnOnce(Bed) -> io::Result<()>) {
    let is_within = std::env::var_os(WITHIN).is_some();
    if !rustix::process::geteuid().is_root() && !is_within {
        let program = std::env::current_exe().expect("it runs");
        let ran = Command::new("unshare")
            .args(["-Ur".as_ref(), program.as_os_str()])
            .args(["--exact", name, "--nocapture"])
            .env(WITHIN, "1")
            .status();
        match ran {
            // unshare(1) itself ends with 1 where there are no user namespaces, a failed test with 101.
            Ok(status) => assert!(status.code() != Some(101), "{name} failed in a user namespace"),
            Err(error) => left_out(name, format!("unshare: {error}")),
        }
        return;
    }
    match Bed::start(&scenario(text), false) {
        Ok(bed) => test(bed).unwrap_or_else(|error| panic!("{name}: {error}")),
        Err(error) if is_missing(&error) => left_out(name, error),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Whether the machine does not let us, rather than that something is wrong.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound | io::ErrorKind::Unsupported)
}

fn udp(address: &str, port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, port))?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    Ok(socket)
}

/// What every run must be, punctual or not.
fn is_sound(report: &Report, refused: u64) {
    for direction in &report.directions {
        assert_eq!((direction.ingress.malformed, direction.ingress.no_room, direction.untaken), (refused, 0, 0));
    }
}

#[test]
fn round_trips_take_what_the_path_says() {
    let text =
        "[link]\nrate = \"20mbit\"\nreverse_rate = \"10mbit\"\n[path]\naccess_rate = \"100mbit\"\nrtt = \"40ms\"";
    where_it_can("round_trips_take_what_the_path_says", text, |bed| {
        let times = bed.sides[0].within(|| ping(20, 1000))?;
        let (ended, report) = bed.end();
        ended?;
        // 1000 bytes take 80 us on each of four access links, 400 us forward and 800 us in reverse.
        let least = Duration::from_micros(40_000 + 4 * 80 + 400 + 800);
        assert!(times.iter().all(|time| *time >= least), "{least:?}: {times:?}");
        // What two hosts and three wake-ups take; the best of twenty, as others may keep the processors busy.
        let best = times.iter().min().expect("twenty");
        assert!(*best < least + Duration::from_micros(300), "{least:?}: {times:?}");
        is_sound(&report, 0);
        assert_eq!(report.directions.map(|direction| direction.written), [20, 20]);
        assert_eq!(report.flows, 1, "both ways are one flow");
        Ok(())
    });
}

#[test]
fn receivers_see_the_marks_in_order() {
    // Everything that waits longer than 5 ms is marked, or lost where it cannot be.
    let text = "[link]\nrate = \"20mbit\"\n[link.qdisc]\nkind = \"step\"\nthreshold = \"5ms\"\nnot_ect = \"drop\"\n\
                limit = \"2000p\"\n[path]\nrtt = \"10ms\"";
    where_it_can("receivers_see_the_marks_in_order", text, |bed| {
        let count = 500_u32;
        // It sees the IP header, after the kernel has checked its checksum.
        let receiver = bed.sides[1].within(|| {
            let socket = net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP))?;
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(2)))?;
            Ok(socket)
        })?;
        // The other end, so that no host answers that the port is closed.
        let _open = bed.sides[1].within(|| udp(V4[1], 7000))?;
        for (ecn, is_ect) in [(2_u8, true), (0, false)] {
            let sender = bed.sides[0].within(|| udp(V4[0], 7001 + u16::from(ecn)))?;
            // Expedited forwarding, so that a codepoint is seen to survive.
            sockopt::set_ip_tos(&sender, 46 << 2 | ecn)?;
            let sending = std::thread::spawn(move || -> io::Result<()> {
                for number in 0..count {
                    let mut datagram = [0; 1000];
                    datagram[..4].copy_from_slice(&number.to_be_bytes());
                    sender.send_to(&datagram, (V4[1], 7000))?;
                }
                Ok(())
            });
            let (mut numbers, mut marked) = (Vec::new(), 0);
            let mut packet = [0; 2048];
            while let Ok((size, _)) = net::recv(&receiver, &mut packet, RecvFlags::empty()) {
                assert_eq!((size, packet[1] >> 2), (1028, 46));
                marked += usize::from(packet[1] & 3 == 3);
                numbers.push(u32::from_be_bytes([packet[28], packet[29], packet[30], packet[31]]));
                if numbers.last() == Some(&(count - 1)) {
                    break;
                }
            }
            sending.join().expect("it does not panic")?;
            assert!(numbers.is_sorted_by(|a, b| a < b), "order is kept: {numbers:?}");
            if is_ect {
                assert_eq!(numbers.len(), count as usize, "what can be marked is not lost");
                // 500 packets of 411 us came at once, or as fast as a busy machine sends: at least half wait for long.
                assert!(marked > 250, "{marked} marks");
            } else {
                assert!(numbers.len() < count as usize && marked == 0, "{} came, {marked} marked", numbers.len());
            }
        }
        let (ended, report) = bed.end();
        ended?;
        is_sound(&report, 0);
        let forward = &report.directions[0];
        assert_eq!(forward.egress.offered, u64::from(2 * count));
        assert!(forward.egress.marked_total() > 250 && forward.egress.dropped_total() > 0);
        Ok(())
    });
}

#[test]
fn both_versions_of_ip_cross() {
    let text = "[link]\nrate = \"100mbit\"\n[path]\nrtt = \"2ms\"";
    where_it_can("both_versions_of_ip_cross", text, |bed| {
        for addresses in [V4, V6] {
            let Ok(left) = bed.sides[0].within(|| udp(addresses[0], 7000)) else {
                left_out("both_versions_of_ip_cross", format!("{} is no address here", addresses[0]));
                continue;
            };
            let right = bed.sides[1].within(|| udp(addresses[1], 7000))?;
            // Two fragments of an interface's 1500 bytes.
            let sent: Vec<u8> = (0..2500_u32).map(|k| k as u8).collect();
            left.send_to(&sent, (addresses[1], 7000))?;
            let mut received = [0; 4096];
            let (size, from) = right.recv_from(&mut received)?;
            assert_eq!((&received[..size], from), (&sent[..], left.local_addr()?));
            right.send_to(b"back", from)?;
            assert_eq!(left.recv(&mut received)?, 4);
        }
        let (ended, report) = bed.end();
        ended?;
        is_sound(&report, 0);
        Ok(())
    });
}

#[test]
fn a_device_that_goes_ends_the_run() {
    let text = "[link]\nrate = \"20mbit\"\n[path]\nrtt = \"10ms\"";
    where_it_can("a_device_that_goes_ends_the_run", text, |bed| {
        bed.sides[0].within(|| ping(1, 100)).map(drop)?;
        bed.runs(1, "ip", &["link", "del", INTERFACE])?;
        let (ended, report) = bed.ends_by_itself();
        let message = ended.expect_err("it cannot go on").to_string();
        assert!(message.starts_with("interface aqm0: the TUN device has gone"), "{message}");
        assert_eq!(report.directions[0].written, 1, "what was counted is kept");
        Ok(())
    });
}
