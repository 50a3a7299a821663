//! `[live]`: how a run between real hosts is made, and what it may be late by. The simulator has no use for it, so that
//! it is written only where it is given.

use crate::error::Error;
use crate::section::Section;
use crate::units;
use crate::written::{Fields, Written};
use base::Span;

/// How a run between real hosts is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Live {
    /// Whose discipline the bottleneck has.
    pub qdisc: Maker,
    /// The version of IP that the traffic blocks speak.
    pub family: Family,
    /// Where packets are captured.
    pub capture: Capture,
    /// How much of each captured packet is kept, bytes (IP).
    pub capture_bytes: u32,
    /// What [`Live::lateness_share`] of packets is late by at most.
    pub lateness: Span,
    /// The share of packets that is within [`Live::lateness`].
    pub lateness_share: f64,
    /// What no packet is later than.
    pub lateness_max: Span,
    /// How far the link's rate may be from what was asked for, as a share of it.
    pub rate_error: f64,
}

/// Whose discipline the bottleneck has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
    /// This laboratory's: the one that the simulator runs.
    Aqmlab,
    /// The kernel's of the same name, on an interface shaped to the same rate.
    Kernel,
}

/// A version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// RFC 791.
    Ipv4,
    /// RFC 8200.
    Ipv6,
}

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capture {
    /// Nowhere.
    Off,
    /// As they arrive at the bottleneck.
    Before,
    /// As they leave it.
    After,
    /// Both.
    Both,
}

impl Default for Live {
    /// 99 % within 200 us, about two full packets' time at 100 Mb/s, and none later than 5 ms, the target of CoDel
    /// (RFC 8289 §4.4): a packet later than that is a queue of its own.
    fn default() -> Self {
        Self {
            qdisc: Maker::Aqmlab,
            family: Family::Ipv4,
            capture: Capture::Off,
            // Headers with all of TCP's options, and the first of the payload.
            capture_bytes: 128,
            lateness: Span::from_us(200),
            lateness_share: 0.99,
            lateness_max: Span::from_ms(5),
            rate_error: 0.005,
        }
    }
}

/// The longest IP packet.
const LARGEST_PACKET: u64 = 65_535;
/// The keys of the section.
pub(crate) const KEYS: &[&str] =
    &["qdisc", "family", "capture", "capture_bytes", "lateness", "lateness_share", "lateness_max", "rate_error"];
const MAKERS: [(&str, Maker); 2] = [("aqmlab", Maker::Aqmlab), ("kernel", Maker::Kernel)];
const FAMILIES: [(&str, Family); 2] = [("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)];
const CAPTURES: [(&str, Capture); 4] =
    [("off", Capture::Off), ("before", Capture::Before), ("after", Capture::After), ("both", Capture::Both)];

/// Reads the section, and writes back what of it is given.
pub(crate) fn read(section: &Section<'_>) -> Result<(Live, Fields), Error> {
    section.only(&[KEYS])?;
    let default = Live::default();
    let longest = Span::from_secs_f64(units::MAX_SECONDS);
    let lateness = section.read("lateness", default.lateness, |entry| entry.span_within(Span::from_us(1), longest))?;
    let capture_bytes =
        section.read("capture_bytes", default.capture_bytes.into(), |entry| entry.size_within(20..=LARGEST_PACKET))?;
    let live = Live {
        qdisc: section.read("qdisc", default.qdisc, |entry| entry.word(&MAKERS))?,
        family: section.read("family", default.family, |entry| entry.word(&FAMILIES))?,
        capture: section.read("capture", default.capture, |entry| entry.word(&CAPTURES))?,
        capture_bytes: capture_bytes as u32,
        lateness,
        lateness_share: section
            .read("lateness_share", default.lateness_share, |entry| entry.number_within(0.0..=1.0))?,
        lateness_max: section
            .read("lateness_max", default.lateness_max.max(lateness), |entry| entry.span_within(lateness, longest))?,
        rate_error: section.read("rate_error", default.rate_error, |entry| entry.number_within(0.0..=1.0))?,
    };
    let text = |word: &str| Written::Text(word.to_owned());
    let span = |span| Written::Text(units::write_span(span));
    let written = [
        ("qdisc", text(word_of(&MAKERS, live.qdisc))),
        ("family", text(word_of(&FAMILIES, live.family))),
        ("capture", text(word_of(&CAPTURES, live.capture))),
        ("capture_bytes", Written::Text(units::write_bytes(f64::from(live.capture_bytes)))),
        ("lateness", span(live.lateness)),
        ("lateness_share", Written::Number(live.lateness_share)),
        ("lateness_max", span(live.lateness_max)),
        ("rate_error", Written::Number(live.rate_error)),
    ];
    let given = written.into_iter().filter(|(key, _)| section.get(key).is_some()).collect();
    Ok((live, given))
}

fn word_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, other)| *other == value).map(|(word, _)| *word).expect("every value has a word")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve;

    fn resolved(live: &str) -> Result<crate::Resolved, Error> {
        let text = format!("name = \"a\"\n{live}\n[[traffic]]\nkind = \"bulk\"\n");
        resolve(&text, "a.toml", &[], &|_| Err("no files".to_owned()))
    }

    #[test]
    fn what_is_not_given_is_not_written() {
        let plain = resolved("").expect("it makes sense");
        assert_eq!(plain.scenario().expect("whole").live, Live::default());
        assert!(!plain.text().contains("live"), "{}", plain.text());
        let given = resolved("[live]\ncapture = \"both\"\nlateness = \"300us\"").expect("it makes sense");
        assert!(given.text().contains("\n[live]\ncapture = \"both\"\nlateness = \"300us\"\n"), "{}", given.text());
        let live = given.scenario().expect("whole").live;
        assert_eq!((live.capture, live.lateness), (Capture::Both, Span::from_us(300)));
        let again = resolve(given.text(), "a.toml", &[], &|_| Err("no files".to_owned())).expect("it makes sense");
        assert_eq!(again.text(), given.text());
    }

    #[test]
    fn most_is_no_less_than_usual() {
        let live = resolved("[live]\nlateness = \"20ms\"").expect("it makes sense").scenario().expect("whole").live;
        assert_eq!(live.lateness_max, Span::from_ms(20));
        let error = resolved("[live]\nlateness = \"20ms\"\nlateness_max = \"1ms\"").expect_err("it makes none");
        assert!(error.to_string().contains("live.lateness_max"), "{error}");
    }
}
