//! This file reads and writes quantities as text, in the units of `tc`: `100mbit`, `15ms`, `16kb`, `24p`, `170hz`.
//!
//! Every reading function takes the whole text. If it cannot read that, it says what was expected. Every writing
//! function gives text that reads back to the same value. Letters may be capitals or not. A number without a unit is
//! refused, since nobody can tell 24 packets from 24 bytes.
//!
//! As in tc(8), `kbit mbit gbit tbit` are powers of 1000 and `kb mb gb` powers of 1024, so that a 16 kB window is
//! 16384 bytes.

use aqm::param::{Length, Value};
use base::{Rate, Span};

/// The longest time, in seconds. Up to here nanoseconds survive a trip through a float of seconds.
pub const MAX_SECONDS: f64 = 1e6;
/// The highest rate: 10 Tb/s.
pub const MAX_BPS: f64 = 1e13;
/// The largest size: 2^50 bytes.
pub const MAX_BYTES: f64 = (1_u64 << 50) as f64;

const BITS: [(&str, f64); 5] = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("tbit", 1e12)];
const BYTES: [(&str, f64); 4] = [("b", 1.0), ("kb", 1024.0), ("mb", 1_048_576.0), ("gb", 1_073_741_824.0)];
/// Units that `tc` reads as bytes a second, while people mean bits a second.
const BYTES_A_SECOND: [(&str, &str, &str); 4] = [
    ("bps", "bytes", "bit"),
    ("kbps", "kilobytes", "kbit"),
    ("mbps", "megabytes", "mbit"),
    ("gbps", "gigabytes", "gbit"),
];
const HERTZ: [(&str, f64); 3] = [("hz", 1.0), ("khz", 1e3), ("mhz", 1e6)];
const PER_SECOND: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)];
const SECONDS: [(&str, f64); 2] = [("min", 60.0), ("h", 3600.0)];

/// A rate: `100mbit`, `64kbit`, `1.5gbit`; above zero.
pub fn rate(text: &str) -> Result<Rate, String> {
    const EXPECTED: &str = "a rate such as 100mbit";
    let (number, unit) = split(text).ok_or(EXPECTED)?;
    if let Some((_, bytes, bits)) = BYTES_A_SECOND.iter().find(|(name, ..)| *name == unit) {
        return Err(format!("{EXPECTED}; tc reads {unit} as {bytes} a second: write {bits} for bits"));
    }
    let bps = (number * factor(&BITS, &unit).ok_or(EXPECTED)?).round();
    match bps {
        _ if bps < 1.0 => Err("a rate above zero".into()),
        _ if bps > MAX_BPS => Err("a rate of at most 10tbit".into()),
        _ => Ok(Rate::from_bps(bps as u64)),
    }
}

/// A time to the nanosecond: `15ms`, `200us`, `2s`, `120min`, `2h`.
pub fn span(text: &str) -> Result<Span, String> {
    seconds(text).map(Span::from_secs_f64)
}

/// A time in seconds, for distributions: as [`span`], not rounded.
pub fn seconds(text: &str) -> Result<f64, String> {
    const EXPECTED: &str = "a time such as 15ms";
    let (number, unit) = split(text).ok_or(EXPECTED)?;
    // Divided rather than multiplied by a power of ten, so that 80ms is the float nearest to 0.08.
    let seconds = match factor(&PER_SECOND, &unit) {
        Some(per_second) => number / per_second,
        None => number * factor(&SECONDS, &unit).ok_or(EXPECTED)?,
    };
    if seconds <= MAX_SECONDS { Ok(seconds) } else { Err(format!("a time of at most {MAX_SECONDS}s")) }
}

/// A size in whole bytes: `1500b`, `16kb`.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if bytes.fract() == 0.0 { Ok(bytes as u64) } else { Err("a whole number of bytes such as 1500b".into()) }
}

/// A size in bytes, for distributions: as [`size`], whole or not.
pub fn bytes(text: &str) -> Result<f64, String> {
    const EXPECTED: &str = "a size such as 1500b or 16kb";
    let (number, unit) = split(text).ok_or(EXPECTED)?;
    let bytes = number * factor(&BYTES, &unit).ok_or(EXPECTED)?;
    if bytes <= MAX_BYTES { Ok(bytes) } else { Err(format!("a size of at most {}", write_bytes(MAX_BYTES))) }
}

/// A length of queue: `24p`, `12kb`.
pub fn length(text: &str) -> Result<Length, String> {
    const EXPECTED: &str = "packets such as 24p or bytes such as 12kb";
    match split(text) {
        Some((packets, unit)) if unit == "p" && packets.is_finite() => Ok(Length::Packets(packets)),
        Some((_, unit)) if factor(&BYTES, &unit).is_some() => bytes(text).map(Length::Bytes),
        _ => Err(EXPECTED.into()),
    }
}

/// A frequency in hertz: `170hz`.
pub fn frequency(text: &str) -> Result<f64, String> {
    const EXPECTED: &str = "a frequency such as 170hz";
    let (number, unit) = split(text).ok_or(EXPECTED)?;
    let hertz = number * factor(&HERTZ, &unit).ok_or(EXPECTED)?;
    if hertz.is_finite() { Ok(hertz) } else { Err(EXPECTED.into()) }
}

/// Writes a rate in the largest unit that needs no fraction.
pub fn write_rate(rate: Rate) -> String {
    let bps = rate.bps();
    let (unit, factor) = largest(&BITS, |factor| bps.is_multiple_of(factor as u64));
    format!("{}{unit}", bps / factor as u64)
}

/// Writes bits a second for errors, to two decimals of the largest unit and rounded down: `12.34mbit`.
pub fn say_rate(bps: u64) -> String {
    let (unit, factor) = largest(&BITS, |factor| bps as f64 >= factor);
    format!("{}{unit}", (bps as f64 / factor * 100.0).floor() / 100.0)
}

/// Writes a time in the largest unit that needs no fraction.
pub fn write_span(span: Span) -> String {
    Value::Time(span).to_string()
}

/// Writes seconds in the largest unit that needs no fraction, or else as seconds.
pub fn write_seconds(seconds: f64) -> String {
    for (unit, per_second) in PER_SECOND {
        let count = (seconds * per_second).round();
        if count / per_second == seconds {
            return format!("{count}{unit}");
        }
    }
    format!("{seconds}s")
}

/// Writes bytes in the largest unit that needs no fraction, or else as bytes.
pub fn write_bytes(bytes: f64) -> String {
    let (unit, factor) = largest(&BYTES, |factor| bytes != 0.0 && (bytes / factor).fract() == 0.0);
    format!("{}{unit}", bytes / factor)
}

/// Writes a frequency.
pub fn write_frequency(hertz: f64) -> String {
    Value::Frequency(hertz).to_string()
}

/// Writes a length of queue.
pub fn write_length(length: Length) -> String {
    match length {
        Length::Packets(packets) => format!("{packets}p"),
        Length::Bytes(bytes) => write_bytes(bytes),
    }
}

/// The number and the unit, in small letters, of `text`; `None` if it does not start with a number.
fn split(text: &str) -> Option<(f64, String)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.to_ascii_lowercase()))
}

fn factor(units: &[(&str, f64)], unit: &str) -> Option<f64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

/// The last unit that fits, or the first.
fn largest(units: &[(&'static str, f64)], fits: impl Fn(f64) -> bool) -> (&'static str, f64) {
    units.iter().rev().find(|(_, factor)| fits(*factor)).or(units.first()).copied().expect("there are units")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_is_said_in_few_digits() {
        let said = [0, 1, 999, 1_000, 12_345_678, 9_999_999_999].map(say_rate);
        assert_eq!(said, ["0bit", "1bit", "999bit", "1kbit", "12.34mbit", "9.99gbit"]);
        assert_eq!(rate("12.34mbit").map(Rate::bps), Ok(12_340_000));
    }

    #[test]
    fn reads_what_tc_reads() {
        for (text, bps) in [("100mbit", 100_000_000), ("1GBit", 1_000_000_000), ("64kbit", 64_000), ("1.5kbit", 1500)] {
            assert_eq!(rate(text).map(Rate::bps), Ok(bps), "{text}");
        }
        for (text, ns) in [
            ("15ms", 15_000_000),
            ("200us", 200_000),
            ("2s", 2_000_000_000),
            ("0.1s", 100_000_000),
            ("120min", 7_200_000_000_000),
            ("2h", 7_200_000_000_000),
            ("0s", 0),
            ("7ns", 7),
        ] {
            assert_eq!(span(text).map(Span::ns), Ok(ns), "{text}");
        }
        for (text, bytes) in [("1500b", 1500), ("16kb", 16_384), ("1MB", 1 << 20), ("1024gb", 1 << 40)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(length("24p"), Ok(Length::Packets(24.0)));
        assert_eq!(length("12kb"), Ok(Length::Bytes(12_288.0)));
        assert_eq!(frequency("170hz"), Ok(170.0));
        assert_eq!(frequency("1.48kHz"), Ok(1480.0));
        assert_eq!(seconds("80ms"), Ok(0.08));
    }

    #[test]
    fn says_what_was_expected() {
        let mbps = "a rate such as 100mbit; tc reads mbps as megabytes a second: write mbit for bits";
        assert_eq!(rate("100mbps"), Err(mbps.into()));
        for text in ["100", "mbit", "", "-1mbit", "1 mbit", "1..0mbit", "1e3mbit", "infmbit", "nanbit", "100mbit/s"] {
            assert_eq!(rate(text), Err("a rate such as 100mbit".into()), "{text}");
        }
        assert_eq!(rate("0mbit"), Err("a rate above zero".into()));
        assert_eq!(rate("11tbit"), Err("a rate of at most 10tbit".into()));
        assert_eq!(rate(&format!("{}bit", "9".repeat(400))), Err("a rate of at most 10tbit".into()));
        for text in ["24", "24x", "p", "5ms", ""] {
            assert_eq!(length(text), Err("packets such as 24p or bytes such as 12kb".into()), "{text}");
        }
        assert_eq!(size("1.5b"), Err("a whole number of bytes such as 1500b".into()));
        assert_eq!(size("1500"), Err("a size such as 1500b or 16kb".into()));
        assert_eq!(span("15"), Err("a time such as 15ms".into()));
        assert_eq!(span("300h"), Err("a time of at most 1000000s".into()));
        assert_eq!(frequency("170"), Err("a frequency such as 170hz".into()));
    }

    #[test]
    fn writes_the_largest_whole_unit() {
        assert_eq!(write_rate(Rate::from_bps(100_000_000)), "100mbit");
        assert_eq!(write_rate(Rate::from_bps(1_500_000)), "1500kbit");
        assert_eq!(write_span(Span::from_us(1_500)), "1500us");
        assert_eq!(write_span(Span::ZERO), "0s");
        assert_eq!(write_seconds(0.08), "80ms");
        assert_eq!(write_seconds(1.0 / 3.0), "0.3333333333333333s");
        assert_eq!(write_bytes(16_384.0), "16kb");
        assert_eq!(write_bytes(0.0), "0b");
        assert_eq!(write_bytes(7000.5), "7000.5b");
        assert_eq!(write_length(Length::Packets(24.0)), "24p");
        assert_eq!(write_frequency(170.0), "170hz");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            bps in 1..=MAX_BPS as u64,
            ns in 0..=(MAX_SECONDS * 1e9) as u64,
            whole in 0..=MAX_BYTES as u64,
            x in 0.0..MAX_SECONDS,
        ) {
            prop_assert_eq!(rate(&write_rate(Rate::from_bps(bps))), Ok(Rate::from_bps(bps)));
            prop_assert_eq!(span(&write_span(Span::from_ns(ns))), Ok(Span::from_ns(ns)));
            prop_assert_eq!(size(&write_bytes(whole as f64)), Ok(whole));
            // Floats to the last bit, those of whole nanoseconds and any others.
            for seconds in [x, ns as f64 / 1e9] {
                prop_assert_eq!(super::seconds(&write_seconds(seconds)), Ok(seconds));
            }
            prop_assert_eq!(bytes(&write_bytes(x)), Ok(x));
            prop_assert_eq!(frequency(&write_frequency(x)), Ok(x));
            prop_assert_eq!(length(&write_length(Length::Packets(x))), Ok(Length::Packets(x)));
            prop_assert_eq!(length(&write_length(Length::Bytes(x))), Ok(Length::Bytes(x)));
        }

        #[test]
        fn nothing_panics(text in ".*") {
            let _ = (rate(&text), span(&text), size(&text), length(&text), frequency(&text));
        }
    }
}
