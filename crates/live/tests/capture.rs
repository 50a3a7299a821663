//! Captures at the queue: what is in the file, and that nothing waits for it.

#![cfg(target_os = "linux")]

use base::{Ecn, Span, Stream, Time};
use live::paths::Announced;
use live::{Capture, Captures, Network, Sides};
use record::Discard;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use scenario::{Scenario, resolve};
use serde_json::json;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BOTH: Sides = Sides { before: true, after: true };

fn scenario() -> Scenario {
    let text = "seed = 3\n[link]\nrate = \"20mbit\"\n[link.qdisc]\nkind = \"pie\"\necn = true\nlimit = \"60p\"\n\
                [path]\nrtt = \"40ms\"\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n";
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    let resolved = resolve(text, "capture.toml", &[], &read).expect("it makes sense");
    resolved.scenario().expect("it has no load to calibrate").clone()
}

/// A place for the file of one test.
fn place(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capture");
    fs::create_dir_all(&folder).expect("it can be made");
    let path = folder.join(name);
    let _ = fs::remove_file(&path);
    path
}

/// An empty folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

/// A UDP datagram of `size` bytes (IP), `number` in its payload.
fn datagram(size: u16, ecn: Ecn, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, ecn as u8, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 128, 0, 1, 16, 0, 0, 9];
    packet[2..4].copy_from_slice(&size.to_be_bytes());
    let sum = packet[..20].as_chunks::<2>().0.iter().map(|&pair| u32::from(u16::from_be_bytes(pair))).sum::<u32>();
    packet[10..12].copy_from_slice(&(!((sum >> 16) + sum) as u16).to_be_bytes());
    packet.resize(usize::from(size), 0);
    packet[28..32].copy_from_slice(&number.to_be_bytes());
    packet
}

/// A packet of the file.
struct Seen {
    interface: String,
    at_ns: u64,
    bytes: Vec<u8>,
    size: u32,
    comment: Option<String>,
}

impl Seen {
    fn number(&self) -> u32 {
        u32::from_be_bytes(self.bytes[28..32].try_into().expect("four bytes"))
    }
}

/// The packets of a file, and per interface how many it saw and missed.
fn read(file: &[u8]) -> (Vec<Seen>, Vec<(u64, u64)>) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let half = |at: usize| usize::from(u16::from_le_bytes(file[at..at + 2].try_into().expect("two bytes")));
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let option = |mut at: usize, end: usize, code: usize| {
        while at + 4 <= end && half(at) != 0 {
            if half(at) == code {
                return Some(at + 4..at + 4 + half(at + 2));
            }
            at += 4 + half(at + 2).next_multiple_of(4);
        }
        None
    };
    let text = |range: std::ops::Range<usize>| String::from_utf8(file[range].to_vec()).expect("it is text");
    let (mut packets, mut statistics, mut interfaces) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < file.len() {
        let end = at + word(at + 4) as usize;
        match word(at) {
            1 => interfaces.push(text(option(at + 16, end - 4, 2).expect("it has a name"))),
            5 => {
                statistics.push([4, 5].map(|code| long(option(at + 20, end - 4, code).expect("a count").start)).into())
            }
            6 => {
                let kept = word(at + 20) as usize;
                packets.push(Seen {
                    interface: interfaces[word(at + 8) as usize].clone(),
                    at_ns: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                    bytes: file[at + 28..at + 28 + kept].to_vec(),
                    size: word(at + 24),
                    comment: option(at + 28 + kept.next_multiple_of(4), end - 4, 1).map(text),
                });
            }
            _ => {}
        }
        at = end;
    }
    (packets, statistics)
}

#[test]
fn every_packet_comes_out_of_the_queue_or_is_dropped_with_its_reason() {
    let mut scenario = scenario();
    scenario.live.capture = scenario::Capture::Both;
    scenario.live.capture_bytes = 64;
    let folder = folder("conserved");
    let path = folder.join("packets.pcapng");
    let mut network = Network::new(&scenario, Announced::nothing());
    network.capture(Captures::create(&folder, &scenario).expect("it can be made"));
    let mut stream = Stream::named(1, "offered");
    let mut now = Time::ZERO;
    let drain = |network: &mut Network, now: Time| {
        while let Some(leaving) = network.advance(now, &mut Discard) {
            network.give_back(leaving);
        }
    };
    // 1500 bytes each 560 us are 21.4 Mb/s: a signal for each 14th packet, below the 10 % from which PIE drops what it
    // could mark.
    for number in 0..20_000 {
        now += Span::from_ns(2 * stream.below(560_000));
        drain(&mut network, now);
        let ecn = if stream.chance(0.5) { Ecn::Ect0 } else { Ecn::NotEct };
        network.send(&datagram(1500, ecn, number), 0, now).expect("a packet");
    }
    drain(&mut network, now + Span::from_secs(10));
    let report = network.take_captures().end();
    let (packets, statistics) = read(&fs::read(&path).expect("it is there"));
    let counts = network.counts(0);
    let bytes = fs::metadata(&path).expect("it is there").len();
    assert_eq!(report, json!({ "seen": packets.len(), "missed": 0, "bytes": bytes, "error": null }));
    let at = |point: &str| {
        let name = format!("forward, {point}");
        packets.iter().filter(move |seen| seen.interface == name).collect::<Vec<_>>()
    };
    let (before, dropped, after) = (at("before the queue"), at("dropped"), at("after the queue"));
    assert_eq!(
        [before.len(), dropped.len(), after.len()],
        [counts.offered, counts.dropped_total(), counts.delivered].map(|n| n as usize)
    );
    assert_eq!(statistics[..3], [(counts.offered, 0), (counts.dropped_total(), 0), (counts.delivered, 0)]);
    let said = |packets: &[&Seen], what: &str| {
        packets.iter().filter(|seen| seen.comment.as_deref() == Some(what)).count() as u64
    };
    for cause in aqm::Cause::ALL {
        let (drops, marks) = (counts.dropped[cause.index()], counts.marked[cause.index()]);
        assert_eq!(said(&dropped, &format!("dropped: {} (pie)", cause.name())), drops, "{cause:?}");
        assert_eq!(said(&after, &format!("marked: {} (pie)", cause.name())), marks, "{cause:?}");
    }
    assert!(counts.marked_total() > 100 && counts.dropped_total() > 100, "{counts:?}");
    assert!(before.iter().all(|seen| seen.comment.is_none()));
    // What comes out is in the order of what went in, less what was dropped; a full packet takes 600 us.
    let mut numbers: Vec<u32> = after.iter().chain(&dropped).map(|seen| seen.number()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..20_000));
    assert!(
        after.windows(2).all(|pair| pair[0].number() < pair[1].number() && pair[1].at_ns - pair[0].at_ns >= 600_000)
    );
    for seen in &after {
        assert_eq!((seen.bytes.len(), seen.size), (64, 1500));
        assert_eq!(seen.bytes[1] == Ecn::Ce as u8, seen.comment.is_some(), "a comment tells of each mark");
        let header = seen.bytes[..20].as_chunks::<2>().0;
        let sum = header.iter().map(|&pair| u32::from(u16::from_be_bytes(pair))).sum::<u32>();
        assert_eq!((sum >> 16) + (sum & 0xffff), 0xffff, "the header checksum is that of the marked header");
    }
}

/// The second of two links is the slower: what leaves the first comes to it. A port that is not asked for has no file.
#[test]
fn of_several_links_each_direction_that_is_asked_for_has_a_file() {
    let text = "[links.home]\nrate = \"40mbit\"\n\
                [links.core]\nrate = \"10mbit\"\nqdisc = { kind = \"pfifo\", limit = \"20p\" }\n\
                [[traffic]]\nkind = \"bulk\"\nflows = 1\nroute = [\"home\", \"core\"]\n\
                [live]\ncapture = \"both\"\ncapture_at = [\"core\", \"home.forward\"]\n";
    let read_no_file = |name: &str| Err(format!("{name}: there are no files here"));
    let resolved = resolve(text, "links.toml", &[], &read_no_file).expect("it makes sense");
    let scenario = resolved.scenario().expect("it has no load to calibrate");
    let folder = folder("links");
    let mut network = Network::new(scenario, Announced::nothing());
    network.capture(Captures::create(&folder, scenario).expect("they can be made"));
    let mut now = Time::ZERO;
    // 1500 bytes each 600 us are 20 Mb/s: half of them pass the second link.
    for number in 0..2_000 {
        now += Span::from_us(600);
        while let Some(leaving) = network.advance(now, &mut Discard) {
            network.give_back(leaving);
        }
        network.send(&datagram(1500, Ecn::NotEct, number), 0, now).expect("a packet");
    }
    while let Some(leaving) = network.advance(now + Span::from_secs(10), &mut Discard) {
        network.give_back(leaving);
    }
    let report = network.take_captures().end();
    let seen = |file: &str, point: &str| -> Vec<u32> {
        let (packets, _) = read(&fs::read(folder.join(file)).expect("it is there"));
        packets.iter().filter(|seen| seen.interface == point).map(Seen::number).collect()
    };
    let (home, core) = ("packets.home.forward.pcapng", "packets.core.forward.pcapng");
    let leaves = seen(home, "forward, after the queue");
    assert_eq!(leaves, (0..2_000).collect::<Vec<_>>());
    assert_eq!(seen(core, "forward, before the queue"), leaves);
    let (dropped, delivered) = (seen(core, "forward, dropped"), seen(core, "forward, after the queue"));
    assert!(dropped.len() > 900 && dropped.len() + delivered.len() == 2_000, "{}", dropped.len());
    let mut files: Vec<String> = fs::read_dir(&folder)
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name().into_string().expect("it is text"))
        .collect();
    files.sort();
    assert_eq!(files, [core, "packets.core.reverse.pcapng", home]);
    let counted = [("home", "forward", 4_000), ("core", "forward", 4_000), ("core", "reverse", 0)];
    for (link, direction, expected) in counted {
        assert_eq!(report["links"][link][direction]["seen"], expected, "{link} {direction}");
    }
}

/// What the first of two links marks comes to the second as marked, and is lost there as such.
#[test]
fn a_packet_has_the_mark_of_the_link_before() {
    let text = "[links.home]\nrate = \"20mbit\"\n\
                qdisc = { kind = \"codel\", ecn = true, ce_threshold = \"1ms\" }\n\
                [links.core]\nrate = \"10mbit\"\nqdisc = { kind = \"pfifo\", limit = \"20p\" }\n\
                [[traffic]]\nkind = \"bulk\"\nflows = 1\nroute = [\"home\", \"core\"]\n\
                [live]\ncapture = \"both\"\ncapture_at = [\"core.forward\"]\n";
    let resolved = resolve(text, "links.toml", &[], &|_| Err(String::new())).expect("it makes sense");
    let scenario = resolved.scenario().expect("it has no load to calibrate");
    let folder = folder("marked");
    let mut network = Network::new(scenario, Announced::nothing());
    network.capture(Captures::create(&folder, scenario).expect("they can be made"));
    // Bursts of five packets each 3 ms, which the first link sends in that time: three wait for more than 1 ms.
    for burst in 0..400 {
        let now = Time::ZERO + Span::from_ms(3 * u64::from(burst));
        while let Some(leaving) = network.advance(now, &mut Discard) {
            network.give_back(leaving);
        }
        for number in 0..5 {
            network.send(&datagram(1500, Ecn::Ect0, burst * 5 + number), 0, now).expect("a packet");
        }
    }
    while let Some(leaving) = network.advance(Time::from_ns(10_000_000_000), &mut Discard) {
        network.give_back(leaving);
    }
    let (counts, _) = (network.counts(0), network.take_captures().end());
    let (packets, _) = read(&fs::read(folder.join("packets.core.forward.pcapng")).expect("it is there"));
    let marked = |point: &str| {
        let at = packets.iter().filter(|seen| seen.interface == format!("forward, {point}"));
        at.filter(|seen| seen.bytes[1] & 3 == Ecn::Ce as u8).count() as u64
    };
    // Every packet that was marked came, and left or was lost.
    assert!(counts.marked_total() >= 1_100 && counts.dropped_total() > 900, "{counts:?}");
    assert_eq!(marked("before the queue"), counts.marked_total());
    assert!(marked("dropped") > 100, "{}", marked("dropped"));
    assert_eq!(marked("dropped") + marked("after the queue"), counts.marked_total());
}

#[test]
fn one_side_is_captured_without_the_other() {
    let scenario = scenario();
    for (sides, expected) in [
        (Sides { before: true, after: false }, ["forward, before the queue", "reverse, before the queue"]),
        (Sides { before: false, after: true }, ["forward, after the queue", "reverse, after the queue"]),
    ] {
        let path = place("side.pcapng");
        let mut capture = Capture::create(&path, &scenario, sides, 128).expect("it can be made");
        for side in [0, 1] {
            let packet = datagram(40, Ecn::NotEct, 7);
            capture.offered(side, &packet, Ecn::NotEct, Time::from_ns(1));
            capture.delivered(side, 0, &packet, Ecn::NotEct, Time::from_ns(2));
        }
        let report = capture.end();
        let (packets, _) = read(&fs::read(&path).expect("it is there"));
        assert_eq!(packets.iter().map(|seen| seen.interface.as_str()).collect::<Vec<_>>(), expected);
        assert!(packets.iter().all(|seen| seen.bytes == datagram(40, Ecn::NotEct, 7)), "none is longer than it was");
        assert_eq!((report.seen, report.missed), (2, 0));
    }
}

/// A disk that takes nothing for a while: a pipe nobody reads.
fn stuck(name: &str) -> PathBuf {
    let path = place(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
    path
}

#[test]
fn a_disk_that_stands_still_delays_nothing_and_what_is_missing_is_counted() {
    let path = stuck("slow.pcapng");
    let opened = std::thread::spawn({
        let path = path.clone();
        move || File::open(path).expect("it is there")
    });
    let mut capture = Capture::create(&path, &scenario(), BOTH, 128).expect("it can be made");
    let mut file = opened.join().expect("it opens");
    let packet = datagram(1500, Ecn::Ect0, 1);
    let (offered, mut longest) = (600_000, Duration::ZERO);
    for number in 0..offered {
        #[expect(clippy::disallowed_methods, reason = "how long the router would be kept is measured on its clock")]
        let began = Instant::now();
        capture.offered(0, &packet, Ecn::Ect0, Time::from_ns(number * 1000));
        longest = longest.max(began.elapsed());
    }
    // The pipe was never read: to wait for it would have taken for ever. Half a second is for a machine that is busy.
    assert!(longest < Duration::from_millis(500), "{longest:?}");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    });
    let report = capture.end();
    let (packets, statistics) = read(&reader.join().expect("it reads").expect("it can be read"));
    // 64 MiB of blocks of 160 bytes, and not one more than went before the disk stood still.
    assert_eq!((report.seen, report.error), (offered, None));
    assert_eq!(packets.len() as u64 + report.missed, offered);
    assert!((400_000..440_000).contains(&packets.len()), "{}", packets.len());
    assert_eq!(statistics[0], (offered, report.missed));
}

#[test]
fn a_file_that_cannot_be_written_on_is_told_at_the_end() {
    let path = stuck("broken.pcapng");
    let opened = std::thread::spawn({
        let path = path.clone();
        move || File::open(path).expect("it is there")
    });
    let mut capture = Capture::create(&path, &scenario(), BOTH, 128).expect("it can be made");
    drop(opened.join().expect("it opens"));
    for number in 0..10_000 {
        capture.offered(0, &datagram(1500, Ecn::Ect0, 1), Ecn::Ect0, Time::from_ns(number * 1000));
    }
    let report = capture.end();
    assert_eq!((report.seen, report.missed), (10_000, 10_000));
    assert!(report.error.as_deref().is_some_and(|error| error.contains("Broken pipe")), "{report:?}");
    // And one that cannot even be begun, at the beginning.
    assert!(Capture::create(&path.join("nowhere"), &scenario(), BOTH, 128).is_err());
}
