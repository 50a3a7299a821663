//! Blocks of unresponsive UDP besides `cbr`: on/off sources, packets at random instants, packets as written down in a
//! file, and probes.
//!
//! A file of packets has lines of `time,bytes`: when a packet is sent, since the start of the source, and its size, IP.
//! A time has a unit as everywhere, or none: seconds. Times do not fall. A first line of names is left out, and so are
//! lines that begin with `#`.

use crate::blocks::{Asked, MOST, Surroundings, arrivals, start, start_or};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::kept::{self, ReadFile};
use crate::scenario::{Udp, UdpSource, Workload};
use crate::section::Section;
use crate::units;
use crate::written::{Fields, Written};
use base::{Distribution, Rate, Span};
use std::sync::Arc;
use traffic::datagrams::PACKET_BYTES;
use traffic::{Datagram, PacketTrace, Probe};

pub(crate) const ON_OFF_KEYS: &[&str] = &["flows", "rate", "packet", "on", "off", "start"];
pub(crate) const POISSON_KEYS: &[&str] = &["flows", "arrivals", "packet", "start"];
pub(crate) const TRACE_KEYS: &[&str] = &["flows", "packets", "start"];
pub(crate) const PROBE_KEYS: &[&str] = &["flows", "interval", "packet", "start"];

/// Sources that are on and off.
pub(crate) fn on_off(block: &Section<'_>, around: &Surroundings<'_, '_>) -> Result<Asked, Error> {
    /// The packets of ns-2.35's `Application/Traffic/Exponential` and `Pareto`, and their mean times on and off.
    const PACKET: u32 = 210;
    const PERIOD: f64 = 0.5;
    /// Below this mean an on-period is a mistaken unit: no packet on the fastest link takes so little.
    const SHORTEST: f64 = 1e-6;
    /// Most times on from one packet to the next: each is drawn, whether a packet comes of it or not.
    const MOST_BETWEEN: f64 = 1e4;
    let flows = flows(block)?;
    let rate = rate(block, around, flows)?;
    let packet = packet(block, PACKET)?;
    let period = |name, least: f64| {
        block.read(name, Distribution::Exponential { mean: PERIOD }, |entry| {
            let period = distribution::read(entry, Quantity::Time)?;
            match period.mean() {
                mean if mean < least => {
                    Err(entry.expected(format!("times of at least {} in the mean", units::write_seconds(least))))
                }
                mean if mean > units::MAX_SECONDS => {
                    Err(entry.expected("times of a finite mean: with shape above 1, and shorter than any run"))
                }
                _ => Ok(period),
            }
        })
    };
    let (on, off) = (period("on", SHORTEST)?, period("off", 0.0)?);
    let distance = f64::from(packet) * 8.0 * f64::from(flows) / rate.bps_f64();
    if on.mean() * MOST_BETWEEN < distance {
        return Err(match block.get("on") {
            Some(entry) => entry.expected(format!(
                "times of at least {} in the mean, a {MOST_BETWEEN}th of what a packet takes",
                units::write_span(Span::from_us((distance * 1e6 / MOST_BETWEEN).ceil() as u64))
            )),
            None => block.get("rate").expect("a rate was read").expected(format!(
                "a rate at which a packet takes at most {MOST_BETWEEN} times on of {} in the mean",
                units::write_seconds(on.mean())
            )),
        });
    }
    let start = start(block, around.duration)?;
    let written = vec![
        ("flows", Written::Integer(u64::from(flows))),
        ("rate", Written::Text(units::write_rate(rate))),
        ("packet", Written::Text(units::write_bytes(f64::from(packet)))),
        ("on", distribution::write(&on, Quantity::Time)),
        ("off", distribution::write(&off, Quantity::Time)),
        ("start", distribution::write(&start, Quantity::Time)),
    ];
    asked(Udp { flows, start, source: UdpSource::OnOff { rate, packet, on, off } }, written)
}

/// Packets at random instants.
pub(crate) fn poisson(block: &Section<'_>, around: &Surroundings<'_, '_>) -> Result<Asked, Error> {
    /// As `cbr` has them.
    const PACKET: f64 = 573.0;
    let flows = flows(block)?;
    let packets_per_s = arrivals(block)?;
    let size = block.read("packet", Distribution::Constant(PACKET), |entry| {
        let size = distribution::read(entry, Quantity::Size)?;
        let (least, most) = (f64::from(*PACKET_BYTES.start()), f64::from(*PACKET_BYTES.end()));
        if size.max() >= least && distribution::smallest(&size) <= most {
            return Ok(size);
        }
        let [least, most] = [least, most].map(units::write_bytes);
        Err(entry.expected(format!("sizes from {least} to {most}")))
    })?;
    let start = start(block, around.duration)?;
    let written = vec![
        ("flows", Written::Integer(u64::from(flows))),
        ("arrivals", Written::Text(units::write_frequency(packets_per_s))),
        ("packet", distribution::write(&size, Quantity::Size)),
        ("start", distribution::write(&start, Quantity::Time)),
    ];
    asked(Udp { flows, start, source: UdpSource::Poisson { packets_per_s, size } }, written)
}

/// Packets as they are written down.
pub(crate) fn trace(block: &Section<'_>, around: &Surroundings<'_, '_>) -> Result<Asked, Error> {
    let flows = flows(block)?;
    let file = block.require("packets", "the name of a file of lines time,bytes", |entry| {
        kept::read(entry, "packets, in lines of time,bytes")
    })?;
    let packets = packets(&file)?;
    // At the instants of the file.
    let start = start_or(block, around.duration, Distribution::Constant(0.0))?;
    let written = vec![
        ("flows", Written::Integer(u64::from(flows))),
        ("packets", kept::write(&file)),
        ("start", distribution::write(&start, Quantity::Time)),
    ];
    asked(Udp { flows, start, source: UdpSource::Trace(packets) }, written)
}

/// Probes.
pub(crate) fn probe(block: &Section<'_>, around: &Surroundings<'_, '_>) -> Result<Asked, Error> {
    /// Ten thousand packets a second: beyond, a probe is no small flow.
    const SHORTEST: Span = Span::from_us(100);
    let flows = flows(block)?;
    let interval =
        block.read("interval", Probe::INTERVAL, |entry| entry.span_within(SHORTEST, Span::from_secs(3_600)))?;
    let packet = packet(block, Probe::PACKET_BYTES)?;
    let takes = around.access_rate.time_for(u64::from(packet));
    if takes > interval {
        let access = units::write_rate(around.access_rate);
        let error =
            |name: &str| block.get(name).map(|entry| entry.expected(format!("what access links of {access} carry")));
        return Err(error("interval").or_else(|| error("packet")).unwrap_or_else(|| {
            block.missing("interval", &format!("at least {} on access links of {access}", units::write_span(takes)))
        }));
    }
    let start = start(block, around.duration)?;
    let written = vec![
        ("flows", Written::Integer(u64::from(flows))),
        ("interval", Written::Text(units::write_span(interval))),
        ("packet", Written::Text(units::write_bytes(f64::from(packet)))),
        ("start", distribution::write(&start, Quantity::Time)),
    ];
    asked(Udp { flows, start, source: UdpSource::Probe { interval, packet } }, written)
}

/// The rate of all sources of a block together.
pub(crate) fn rate(block: &Section<'_>, around: &Surroundings<'_, '_>, flows: u32) -> Result<Rate, Error> {
    block.require("rate", "a rate such as 1mbit", |entry| {
        let rate = entry.rate()?;
        let most = Rate::from_bps(around.access_rate.bps().saturating_mul(u64::from(flows)));
        if rate > most {
            let most = units::write_rate(most);
            return Err(entry.expected(format!("at most {most}, what the access links of {flows} carry")));
        }
        Ok(rate)
    })
}

/// The size of each packet.
pub(crate) fn packet(block: &Section<'_>, default: u32) -> Result<u32, Error> {
    let sizes = u64::from(*PACKET_BYTES.start())..=u64::from(*PACKET_BYTES.end());
    let packet = block.read("packet", u64::from(default), |entry| entry.size_within(sizes))?;
    Ok(u32::try_from(packet).expect("the range ends below 2^32"))
}

fn flows(block: &Section<'_>) -> Result<u32, Error> {
    block.read("flows", 1, |entry| entry.count(1..=MOST))
}

fn asked(udp: Udp, written: Fields) -> Result<Asked, Error> {
    Ok((Ok(Workload::Udp(udp)), written))
}

/// The lines of a file of packets.
fn packets(file: &ReadFile) -> Result<Arc<[Datagram]>, Error> {
    let mut packets: Vec<(Span, u32)> = Vec::new();
    for (number, line) in lines(&file.text) {
        let expected = "expected time,bytes, such as 0.25,573";
        let read = |line: &str| -> Option<(Span, f64)> {
            let (time, bytes) = line.split_once(',')?;
            Some((time_of(time.trim())?, bytes.trim().parse().ok()?))
        };
        let (at, bytes) = read(line).ok_or_else(|| file.error(number, expected.into()))?;
        let (least, most) = (f64::from(*PACKET_BYTES.start()), f64::from(*PACKET_BYTES.end()));
        if !(least..=most).contains(&bytes) || bytes.fract() != 0.0 {
            return Err(file.error(number, format!("expected whole bytes from {least} to {most}, headers included")));
        }
        if packets.last().is_some_and(|(before, _)| at < *before) {
            return Err(file.error(number, "expected times that do not fall from one line to the next".into()));
        }
        packets.push((at, bytes as u32));
    }
    if packets.is_empty() {
        return Err(file.error(1, "expected lines of time,bytes, such as 0.25,573".into()));
    }
    Ok(PacketTrace::packets(packets))
}

/// The lines of a file that hold something, with their numbers, without a heading.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let data = (1..).zip(text.lines()).filter(|(_, line)| distribution::is_data(line)).enumerate();
    // Names throughout: what holds a number, "nan" too, is data gone wrong.
    let is_heading = |line: &str| {
        let is_number = |field: &str| field.trim().parse::<f64>().is_ok();
        line.trim_start().starts_with(char::is_alphabetic) && !line.split(',').any(is_number)
    };
    data.filter(move |(index, (_, line))| *index > 0 || !is_heading(line)).map(|(_, line)| line)
}

/// A time of a file: with a unit, or in seconds without; no longer than any run.
pub(crate) fn time_of(text: &str) -> Option<Span> {
    let seconds = text.parse::<f64>().ok().or_else(|| units::seconds(text).ok())?;
    (0.0..=units::MAX_SECONDS).contains(&seconds).then(|| Span::from_secs_f64(seconds))
}
