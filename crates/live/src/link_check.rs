//! Before a run, packets between the hosts measure whether the emulated link is what was asked for. They pass the
//! router and the devices of the run.
//!
//! First come probes at even distances over the idle link, which measure the delay, its variation and the order. Then
//! comes a train of packets back to back, which measures the rate at which its packets come out (dispersion; Jain and
//! Routhier, "Packet trains", IEEE JSAC 4(6), 1986).
//!
//! The check leaves the discipline out, because its drops, marks and reordering are no property of the link and have
//! their rows in the tables of the run. It also leaves out the path's losses and reordering. The mean of a trace stands
//! for the trace.

use crate::addressing::Addressing;
use crate::bed::Bed;
use crate::clock::{Clock, Epoch, Real, Sleeping};
use crate::paths::{Announcer, announcers};
use crate::router::Router;
use crate::wire;
use base::{Span, Time};
use rustix::ioctl::{self, Getter, opcode};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use scenario::{Impairment, Link, Maker, Scenario};
use serde_json::{Value, json};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What was measured of both directions: left to right first.
#[derive(Clone, Debug)]
pub struct LinkCheck {
    ways: [Way; 2],
}

/// One direction.
#[derive(Clone, Debug)]
struct Way {
    asked_rate_bps: f64,
    rate_bps: Option<f64>,
    asked_delay_s: f64,
    /// The delay of the probes: smallest, median, 90th percentile, largest.
    delay_s: Option<[f64; 4]>,
    /// Mean difference of the delays of successive probes (RFC 3550 §6.4.1).
    jitter_s: Option<f64>,
    sent: usize,
    lost: usize,
    /// Packets that the socket had no room for.
    overrun: usize,
    reordered: usize,
}

/// A packet of the check, and when it was sent and received.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    number: usize,
    sent_ns: u64,
    received_ns: u64,
}

/// The number of probes of the idle link, and the time from one to the next.
const PROBES: usize = 40;
const APART: Span = Span::from_ms(5);
/// The length of the train, and the bounds of its number of packets.
const TRAIN: Span = Span::from_ms(250);
const TRAIN_PACKETS: std::ops::RangeInclusive<u64> = 20..=8000;
/// Sizes of the train's packets, bytes (IP). They are full ones, except on links where twenty of these would take long.
const LARGEST: u64 = 1500;
const SMALLEST: u64 = 128;
/// IP and UDP headers, bytes. The check uses IPv4.
const HEADERS: usize = 28;
/// How long packets that are late are waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest propagation delay of the check, so that it takes no longer for a scenario with longer paths.
const LONGEST_DELAY: Span = Span::from_ms(50);
/// How often a check that takes long says that it goes on.
const SAYS: Span = Span::from_secs(2);
/// Until the threads are ready.
const READY: Span = Span::from_ms(20);
const PORT: u16 = 5009;

/// How the link of the check differs from that of `scenario`, in words.
pub fn remarks(scenario: &Scenario) -> Vec<String> {
    let traces = scenario.links.iter().flat_map(|link| &link.traces).any(Option::is_some);
    let changes = scenario.links.iter().any(|link| link.changes.is_some());
    let kernel = scenario.live.qdisc == Maker::Kernel;
    let of_trace =
        "the check before the run is of a link at the trace's mean rate; nothing checks the rates of the trace";
    let of_kernel = "the check before the run is of the router's own link; the rate of the kernel's is judged in the run, \
                     by each second of backlog";
    let of_changes = "the check before the run is of links as they are at the start; nothing checks how they change";
    let of_routes = "the check before the run is of the route of the first block of traffic; nothing checks the others";
    let remarks = [
        traces.then_some(of_trace),
        changes.then_some(of_changes),
        scenario.has_routes().then_some(of_routes),
        kernel.then_some(of_kernel),
    ];
    remarks.into_iter().flatten().map(str::to_owned).collect()
}

/// Measures the link of `scenario` over the devices of `bed`. That takes minutes on links of some kb/s: `goes_on` is
/// called before each direction, and now and then while packets come.
///
/// # Errors
/// Where hosts or router cannot do it at all.
pub fn measure(bed: &Bed, scenario: &Scenario, is_virtual: bool, goes_on: &mut dyn FnMut()) -> io::Result<LinkCheck> {
    let delay = (scenario.path.rtt.at(0.5) / 2).min(LONGEST_DELAY);
    let (mut scenario, ports) = (without_discipline(scenario), [bed.ports[0].duplicate()?, bed.ports[1].duplicate()?]);
    scenario.duration = Span::from_secs(3600);
    let epoch = Epoch::after(READY);
    let ([announcer], announced) = announcers();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (scenario, stop) = (&scenario, &stop);
        let router = scope.spawn(move || -> io::Result<()> {
            let until = Time::ZERO + scenario.duration;
            if is_virtual {
                carry(Router::new(scenario, ports, Sleeping::since(epoch)?, announced, None), until, stop)
            } else {
                carry(Router::new(scenario, ports, Real::since(epoch)?, announced, None), until, stop)
            }
        });
        let measured = [0, 1].map(|side| one_way(bed, scenario, side, delay, &announcer, goes_on));
        stop.store(true, Ordering::Relaxed);
        router.join().unwrap_or_else(|_| Err(io::Error::other("the router stopped")))?;
        let [left, right] = measured;
        Ok(LinkCheck { ways: [left?, right?] })
    })
}

fn carry<C: Clock>(mut router: Router<C>, until: Time, stop: &AtomicBool) -> io::Result<()> {
    router.run(until, stop)
}

/// The scenario with a queue that takes everything and paths that lose nothing.
fn without_discipline(scenario: &Scenario) -> Scenario {
    let text = "[link.qdisc]\nkind = \"pfifo\"\nlimit = \"100000p\"\n[[traffic]]\nkind = \"bulk\"";
    let plain = scenario::resolve(text, "link.toml", &[], &|_| Err(String::new())).expect("it makes sense");
    let qdisc = plain.scenario().expect("it has no load to calibrate").link().qdiscs[0].clone();
    let mut scenario = scenario.clone();
    for link in &mut scenario.links {
        link.qdiscs = [qdisc.clone(), qdisc.clone()];
        (link.traces, link.changes) = ([None, None], None);
    }
    scenario.path.impairments = [Impairment::NONE, Impairment::NONE];
    scenario
}

/// Sends from `side` and measures on the other.
fn one_way(
    bed: &Bed,
    scenario: &Scenario,
    side: u8,
    delay: Span,
    announcer: &Announcer,
    goes_on: &mut dyn FnMut(),
) -> io::Result<Way> {
    goes_on();
    let addressing = Addressing::new(scenario::Family::Ipv4);
    let from = SocketAddr::new(addressing.own(side), PORT + u16::from(side));
    let to = SocketAddr::new(addressing.own(1 - side), PORT + u16::from(side));
    announcer.connection(wire::flow_key(from, to, 17), 0, delay);
    let bound = |at: SocketAddr, side: u8| bed.sides[usize::from(side)].within(|| UdpSocket::bind(at));
    let (sender, receiver) = (bound(from, side)?, bound(to, 1 - side)?);
    sender.connect(to)?;
    // In the kernel a packet takes about twice its bytes. Only root of the machine may have that much room; packets
    // that find none are counted apart.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 64 << 20);
    // From now on packets are stamped on arrival; there is none yet, and so an error.
    let _ = stamp(&receiver);

    let route = &scenario.traffic[0].route.links[usize::from(side)];
    let links: Vec<&Link> = route.iter().map(|&link| &scenario.links[usize::from(link)]).collect();
    let rate = |link: &Link| link.rates[usize::from(side)];
    let slowest = links.iter().map(|link| rate(link)).min().expect("a route crosses a link");
    let size = (slowest.bps() / 8 / TRAIN_PACKETS.start()).clamp(SMALLEST, LARGEST);
    let takes = |link: &&Link, size: u64| rate(link).time_for(link.framing().wire(size as u32).into());
    // On the slowest link, and on all of them with the delays behind them.
    let on_link = |size: u64| links.iter().map(|link| takes(link, size)).max().unwrap_or_default();
    let over_links =
        |size: u64| links.iter().fold(Span::ZERO, |sum, link| sum + takes(link, size) + link.delays[usize::from(side)]);
    // From one probe to the next, and a packet before it.
    let patience = PATIENCE + Duration::from_nanos((delay + over_links(size) * 3).ns());
    receiver.set_read_timeout(Some(patience))?;
    let overruns =
        || Ok::<_, io::Error>(bed.counters[usize::from(1 - side)].read()?.get("Udp:RcvbufErrors").unwrap_or(0));
    let overruns_before = overruns()?;
    let access = |size: u64| scenario.path.access_rate.time_for(size);
    let packets = (TRAIN.ns() / on_link(size).ns().max(1)).clamp(*TRAIN_PACKETS.start(), *TRAIN_PACKETS.end()) as usize;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&sender, size as usize, packets, APART.max(on_link(size) * 2)));
        let arrivals = receive(&receiver, PROBES + packets, goes_on)?;
        sending.join().unwrap_or_else(|_| Err(io::Error::other("the sender stopped")))?;
        // The slowest of what it passes.
        let spacing = on_link(size).max(access(size));
        let asked_rate_bps = size as f64 * 8.0 / spacing.secs_f64();
        let asked_delay_s = (delay + access(size) + over_links(size) + access(size)).secs_f64();
        let overrun = (overruns()? - overruns_before) as usize;
        Ok(Way::of(&arrivals, overrun, packets, size, asked_rate_bps, asked_delay_s))
    })
}

fn send(sender: &UdpSocket, size: usize, packets: usize, apart: Span) -> io::Result<()> {
    let mut datagram = vec![0; size - HEADERS];
    let mut send = |number: usize| {
        datagram[..8].copy_from_slice(&(number as u64).to_be_bytes());
        datagram[8..16].copy_from_slice(&now_ns(ClockId::Monotonic).to_be_bytes());
        sender.send(&datagram).map(drop)
    };
    let start = now_ns(ClockId::Monotonic) + 2 * READY.ns();
    for number in 0..PROBES {
        sleep_until(start + number as u64 * apart.ns());
        send(number)?;
    }
    sleep_until(start + PROBES as u64 * apart.ns());
    (PROBES..PROBES + packets).try_for_each(send)
}

fn receive(receiver: &UdpSocket, packets: usize, goes_on: &mut dyn FnMut()) -> io::Result<Vec<Arrival>> {
    let mut said_ns = now_ns(ClockId::Monotonic);
    let mut arrivals = Vec::with_capacity(packets);
    let mut datagram = [0; 2048];
    // Stamps are of the time of day, which is not to be set meanwhile.
    let offset = now_ns(ClockId::Realtime).wrapping_sub(now_ns(ClockId::Monotonic));
    while arrivals.len() < packets {
        match receiver.recv(&mut datagram) {
            Ok(size) if size >= 16 => {
                let read = now_ns(ClockId::Monotonic);
                let word = |at: usize| {
                    let bytes = datagram[at..at + 8].try_into().expect("eight of them");
                    u64::from_be_bytes(bytes)
                };
                // Without a stamp, when it was read.
                let received_ns = stamp(receiver).map_or(read, |stamp| stamp.wrapping_sub(offset).min(read));
                arrivals.push(Arrival { number: word(0) as usize, sent_ns: word(8), received_ns });
                if read - said_ns > SAYS.ns() {
                    said_ns = read;
                    goes_on();
                }
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(arrivals)
}

impl Way {
    fn of(
        arrivals: &[Arrival],
        overrun: usize,
        train: usize,
        size: u64,
        asked_rate_bps: f64,
        asked_delay_s: f64,
    ) -> Self {
        let is_probe = |arrival: &&Arrival| arrival.number < PROBES;
        let delays: Vec<f64> = arrivals
            .iter()
            .filter(is_probe)
            .map(|arrival| arrival.received_ns.saturating_sub(arrival.sent_ns) as f64 * 1e-9)
            .collect();
        let mut sorted = delays.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let delay_s = (n > 0).then(|| [0, n / 2, n * 9 / 10, n - 1].map(|rank| sorted[rank]));
        let steps: Vec<f64> = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let jitter_s = (!steps.is_empty()).then(|| steps.iter().sum::<f64>() / steps.len() as f64);
        let points: Vec<(f64, f64)> = arrivals
            .iter()
            .filter(|arrival| arrival.number >= PROBES)
            .map(|arrival| ((arrival.number - PROBES) as f64, arrival.received_ns as f64))
            .collect();
        let rate_bps = slope(&points).map(|ns_a_packet| size as f64 * 8e9 / ns_a_packet);
        let reordered = arrivals.windows(2).filter(|pair| pair[1].number < pair[0].number).count();
        let sent = PROBES + train;
        let lost = (sent - arrivals.len()).saturating_sub(overrun);
        Self { asked_rate_bps, rate_bps, asked_delay_s, delay_s, jitter_s, sent, lost, overrun, reordered }
    }

    /// What is not as asked for; `None` if all is.
    fn breaks(&self, scenario: &Scenario) -> Option<String> {
        let live = &scenario.live;
        if self.lost > 0 {
            return Some(format!("{} of {} packets were lost on the idle link", self.lost, self.sent));
        }
        if self.reordered > 0 {
            return Some(format!("{} packets overtook others", self.reordered));
        }
        let rate = self.rate_bps?;
        let off = rate / self.asked_rate_bps - 1.0;
        if off.abs() > live.rate_error {
            let [rate, asked] = [rate, self.asked_rate_bps].map(|bps| bps * 1e-6);
            let most = live.rate_error * 100.0;
            return Some(format!("the rate was {rate:.3} Mb/s, expected {asked:.3} Mb/s within {most} %"));
        }
        let [least, _, usual, longest] = self.delay_s?.map(|delay| delay * 1e3);
        let [asked, most] = [self.asked_delay_s * 1e3, live.lateness.secs_f64() * 1e3];
        // A microsecond for two clocks that are read one after the other.
        if usual - asked > most || asked - least > 1e-3 {
            let expected = asked + most;
            return Some(format!(
                "probes took {least:.3} ms at least and {usual:.3} ms or less in nine of ten cases, \
                 expected {asked:.3} to {expected:.3} ms"
            ));
        }
        let expected = asked + live.lateness_max.secs_f64() * 1e3;
        (longest > expected).then(|| format!("a probe took {longest:.3} ms, expected {expected:.3} ms at most"))
    }

    fn to_json(&self) -> Value {
        json!({
            "rate_bps": self.rate_bps,
            "asked_rate_bps": self.asked_rate_bps,
            "rate_error": self.rate_bps.map(|rate| rate / self.asked_rate_bps - 1.0),
            "asked_delay_s": self.asked_delay_s,
            "delay_s": self.delay_s.map(|[min, p50, p90, max]| {
                json!({ "min": min, "p50": p50, "p90": p90, "max": max })
            }),
            "jitter_s": self.jitter_s,
            "sent_packets": self.sent,
            "lost_packets": self.lost,
            "overrun_packets": self.overrun,
            "reordered_packets": self.reordered,
        })
    }
}

impl LinkCheck {
    /// What of the link is not as `scenario` asks for, in a line; `None` if all is.
    pub fn breaks(&self, scenario: &Scenario) -> Option<String> {
        let ways = ["forward", "in reverse"].iter().zip(&self.ways);
        ways.filter_map(|(name, way)| {
            Some(format!("the link, checked before the run, {name}: {}", way.breaks(scenario)?))
        })
        .next()
    }

    /// Both directions.
    pub fn to_json(&self) -> Value {
        json!([self.ways[0].to_json(), self.ways[1].to_json()])
    }
}

/// The least-squares slope of points (x, y); `None` of fewer than two different x.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x0, y0) = *points.first()?;
    // From the first point, so that nanoseconds of a long uptime keep their digits.
    let moved = || points.iter().map(move |(x, y)| (x - x0, y - y0));
    let (x_mean, y_mean) = (moved().map(|(x, _)| x).sum::<f64>() / n, moved().map(|(_, y)| y).sum::<f64>() / n);
    let above: f64 = moved().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let below: f64 = moved().map(|(x, _)| (x - x_mean) * (x - x_mean)).sum();
    (below > 0.0).then(|| above / below)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sleep_until(ns: u64) {
    let at = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    while clock_nanosleep_absolute(ClockId::Monotonic, &at).is_err() {}
}

/// SIOCGSTAMPNS_NEW: `_IOR(0x89, 0x07, long long[2])`.
const GET_STAMP: ioctl::Opcode = opcode::read::<[i64; 2]>(0x89, 7);

/// When the last packet read from `socket` arrived at this host, ns of the time of day (socket(7)).
#[expect(unsafe_code, reason = "rustix has no word for this ioctl")]
fn stamp(socket: &UdpSocket) -> Option<u64> {
    // SAFETY: SIOCGSTAMPNS_NEW writes two 64-bit words, seconds and nanoseconds.
    let [seconds, ns] = unsafe { ioctl::ioctl(socket, Getter::<GET_STAMP, [i64; 2]>::new()) }.ok()?;
    u64::try_from(seconds).ok().map(|seconds| seconds * 1_000_000_000 + ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(train: usize, ns_a_packet: u64, delay_ns: impl Fn(usize) -> u64) -> Vec<Arrival> {
        let sent = |number: usize| 1_000_000_000_000_000 + number as u64 * 5_000_000;
        let probe = |number| Arrival { number, sent_ns: sent(number), received_ns: sent(number) + delay_ns(number) };
        let first = sent(PROBES) + 10_000_000;
        let packet = |k: usize| Arrival {
            number: PROBES + k,
            sent_ns: sent(PROBES),
            received_ns: first + k as u64 * ns_a_packet,
        };
        (0..PROBES).map(probe).chain((0..train).map(packet)).collect()
    }

    fn scenario() -> Scenario {
        let resolved = scenario::resolve("[[traffic]]\nkind = \"bulk\"", "a.toml", &[], &|_| Err(String::new()));
        resolved.expect("it makes sense").scenario().expect("whole").clone()
    }

    #[test]
    fn a_link_as_asked_for_passes() {
        // 1500 bytes in 600 us: 20 Mb/s. Probes take 10 ms, every other one 100 us more.
        let way = Way::of(&arrivals(400, 600_000, |k| 10_000_000 + (k as u64 % 2) * 100_000), 0, 400, 1500, 20e6, 0.01);
        assert_eq!(way.breaks(&scenario()), None, "{way:?}");
        assert!((way.rate_bps.expect("a rate") - 20e6).abs() < 1.0 && way.lost == 0 && way.reordered == 0);
        assert!((way.jitter_s.expect("jitter") - 100e-6).abs() < 1e-9);
    }

    #[test]
    fn another_link_does_not() {
        let asked = |arrivals: &[Arrival]| Way::of(arrivals, 0, 400, 1500, 20e6, 0.01).breaks(&scenario());
        let usual = |_: usize| 10_000_000;
        let slow = asked(&arrivals(400, 606_100, usual)).expect("1 % off");
        assert!(slow.starts_with("the rate was 19.799 Mb/s"), "{slow}");
        let late = asked(&arrivals(400, 600_000, |_| 10_250_000)).expect("250 us late");
        assert!(late.starts_with("probes took 10.250 ms"), "{late}");
        assert!(asked(&arrivals(400, 600_000, |_| 9_990_000)).is_some(), "10 us early");
        let jitter = asked(&arrivals(400, 600_000, |k| 10_000_000 + u64::from(k % 8 == 0) * 300_000));
        assert!(jitter.is_some_and(|said| said.starts_with("probes took 10.000 ms")), "one in eight is late");
        let once = |ns| asked(&arrivals(400, 600_000, |k| 10_000_000 + u64::from(k == 7) * ns));
        assert_eq!(once(4_900_000), None);
        assert!(once(5_100_000).is_some_and(|said| said.starts_with("a probe took 15.100 ms")));
        let overrun = Way::of(&arrivals(399, 600_000, usual), 1, 400, 1500, 20e6, 0.01);
        assert_eq!((overrun.breaks(&scenario()), overrun.lost), (None, 0), "the receiver's, not the link's");
        assert!(asked(&arrivals(399, 600_000, usual)).expect("one is lost").starts_with("1 of 440"));
        let mut swapped = arrivals(400, 600_000, usual);
        swapped.swap(100, 101);
        assert_eq!(asked(&swapped).as_deref(), Some("1 packets overtook others"));
    }
}
