//! This file has the keys that several kinds of traffic share, and reads the values of a block by the keys of its row.

use super::{Key, Takes};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::section::{Entry, Section};
use crate::units;
use base::{Distribution, Span};
use traffic::datagrams::PACKET_BYTES;

/// The word that stands as the default of a key without one.
pub(crate) const REQUIRED: &str = "required";

/// The most sources or users: more than a simulation can hold.
pub(crate) const MOST: u32 = 100_000_000;
/// The largest request, which is also the largest one that can be recorded.
pub(crate) const MOST_ASKED: u64 = 1 << 30;

/// How many sources there are.
pub(crate) const FLOWS: Key =
    Key { name: "flows", takes: Takes::Count(1, MOST), default: "1", doc: "how many sources" };
/// When sources begin.
pub(crate) const START: Key = Key {
    name: "start",
    takes: Takes::Drawn("time or distribution"),
    default: "uniform over the first seconds",
    doc: "when each begins",
};
/// How many connections arrive in a second.
pub(crate) const ARRIVALS: Key = Key {
    name: "arrivals",
    takes: Takes::Frequency(0.0, 1e7),
    default: REQUIRED,
    doc: "arrivals a second, such as 1480hz",
};

/// The `direction` of data.
pub(crate) const OF_DATA: &str = "which way the data flows";
/// The `direction` of responses.
pub(crate) const OF_RESPONSES: &str = "which way responses flow";
/// The `direction` of packets that are not answered.
pub(crate) const OF_PACKETS: &str = "which way the packets flow";

impl Key {
    /// The size of unresponsive packets.
    pub(crate) const fn packet(default: &'static str) -> Self {
        let (least, most) = (*PACKET_BYTES.start() as u64, *PACKET_BYTES.end() as u64);
        Self { name: "packet", takes: Takes::Size(least, most), default, doc: "size of each packet, IP" }
    }

    /// Reads a whole number of a block.
    pub(crate) fn count(&self, block: &Section<'_>) -> Result<u32, Error> {
        let Takes::Count(low, high) = self.takes else { unreachable!("{} is no count", self.name) };
        block.read(self.name, self.literal(), |entry| entry.count(low..=high))
    }

    /// Reads a number of a block.
    pub(crate) fn number(&self, block: &Section<'_>) -> Result<f64, Error> {
        let Takes::Number(low, high) = self.takes else { unreachable!("{} is no number", self.name) };
        block.read(self.name, self.literal(), |entry| entry.number_within(low..=high))
    }

    /// Reads `true` or `false` of a block.
    pub(crate) fn flag(&self, block: &Section<'_>) -> Result<bool, Error> {
        block.read(self.name, self.literal(), Entry::flag)
    }

    /// Reads a number of whole bytes of a block.
    pub(crate) fn size(&self, block: &Section<'_>) -> Result<u32, Error> {
        let Takes::Size(low, high) = self.takes else { unreachable!("{} is no size", self.name) };
        let default = units::size(self.default).expect("a default is a size");
        let size = block.read(self.name, default, |entry| entry.size_within(low..=high))?;
        Ok(u32::try_from(size).expect("the range ends below 2^32"))
    }

    /// Reads a time of a block.
    pub(crate) fn time(&self, block: &Section<'_>) -> Result<Span, Error> {
        let Takes::Time(low, high) = self.takes else { unreachable!("{} is no time", self.name) };
        let default = units::span(self.default).expect("a default is a time");
        block.read(self.name, default, |entry| entry.span_within(Span::from_ns(low), Span::from_ns(high)))
    }

    /// A default that is a number or a truth.
    fn literal<T: std::str::FromStr>(&self) -> T {
        self.default.parse().ok().unwrap_or_else(|| panic!("the default of {} is not of its kind", self.name))
    }
}

/// How many arrive a second.
pub(crate) fn arrivals(block: &Section<'_>) -> Result<f64, Error> {
    let Takes::Frequency(least, most) = ARRIVALS.takes else { unreachable!("it is a frequency") };
    block.require(ARRIVALS.name, "a frequency such as 1480hz", |entry| {
        let hertz = entry.quantity(units::frequency)?;
        if hertz > least && hertz <= most {
            return Ok(hertz);
        }
        Err(entry.expected(format!("a frequency above zero and at most {}", units::write_frequency(most))))
    })
}

/// A distribution of sizes of transfers.
pub(crate) fn at_least_a_byte(entry: &Entry<'_>) -> Result<Distribution, Error> {
    let size = distribution::read(entry, Quantity::Size)?;
    if size.max() >= 1.0 { Ok(size) } else { Err(entry.expected("sizes of at least 1b")) }
}

/// When flows start: unless stated, spread over the first ten seconds (Brandauer et al. 2001), or the first twentieth
/// of a run too short for that.
pub(crate) fn start(block: &Section<'_>, duration: Span) -> Result<Distribution, Error> {
    let latest = (duration / 20).min(Span::from_secs(10));
    start_or(block, duration, Distribution::Uniform(0.0, latest.ns() as f64 / 1e9))
}

/// When flows start, within the run.
pub(crate) fn start_or(block: &Section<'_>, duration: Span, default: Distribution) -> Result<Distribution, Error> {
    block.read(START.name, default, |entry| {
        let start = distribution::read(entry, Quantity::Time)?;
        if distribution::smallest(&start) < duration.secs_f64() {
            return Ok(start);
        }
        Err(entry.expected(format!("a start before the end of the run at {}", units::write_span(duration))))
    })
}
