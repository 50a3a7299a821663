//! `[live]` says how a run between real hosts is made, and how late it may be. The simulator does not use it, so that
//! it is written only where it is given.

use crate::bounds::MOST_CAPTURES;
use crate::error::Error;
use crate::scenario::Link;
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use base::Span;

/// How a run between real hosts is made.
#[derive(Clone, PartialEq, Debug)]
pub struct Live {
    /// Whose discipline the bottleneck has.
    pub qdisc: Maker,
    /// The version of IP that the traffic blocks speak.
    pub family: Family,
    /// Where packets are captured.
    pub capture: Capture,
    /// At which links packets are captured, and in which directions: the number of a link in the file, 0 for forward
    /// or 1 for reverse. Empty means all of them.
    pub capture_at: Vec<(usize, usize)>,
    /// How much of each captured packet is kept, bytes (IP).
    pub capture_bytes: u32,
    /// The most lateness of [`Live::lateness_share`] of the packets.
    pub lateness: Span,
    /// The share of packets that may be late by [`Live::lateness`] at most.
    pub lateness_share: f64,
    /// The most lateness of any packet.
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
    /// Asks for 99 % of packets within 200 us, about two full packets' time at 100 Mb/s. No packet may be later than
    /// 5 ms, the target of CoDel (RFC 8289 §4.4), since that would be a queue of its own.
    fn default() -> Self {
        Self {
            qdisc: Maker::Aqmlab,
            family: Family::Ipv4,
            capture: Capture::Off,
            capture_at: Vec::new(),
            // This holds headers with all of TCP's options, and the first bytes of the payload.
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
pub(crate) const KEYS: &[&str] = &[
    "qdisc",
    "family",
    "capture",
    "capture_at",
    "capture_bytes",
    "lateness",
    "lateness_share",
    "lateness_max",
    "rate_error",
];
/// The words for directions after the name of a link, as in `core.reverse`.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];
const MAKERS: [(&str, Maker); 2] = [("aqmlab", Maker::Aqmlab), ("kernel", Maker::Kernel)];
const FAMILIES: [(&str, Family); 2] = [("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)];
const CAPTURES: [(&str, Capture); 4] =
    [("off", Capture::Off), ("before", Capture::Before), ("after", Capture::After), ("both", Capture::Both)];

impl Live {
    /// The links, of so many, at which packets are captured, with the directions.
    pub fn captured(&self, links: usize) -> Vec<(usize, usize)> {
        if self.capture_at.is_empty() {
            (0..links).flat_map(|link| [(link, 0), (link, 1)]).collect()
        } else {
            self.capture_at.clone()
        }
    }

    /// Checks that packets are captured in no more directions of `links` links than there may be files.
    ///
    /// # Errors
    /// What was expected.
    pub fn fits(&self, links: usize) -> Result<(), String> {
        if self.capture == Capture::Off || self.captured(links).len() <= MOST_CAPTURES {
            return Ok(());
        }
        Err(format!("at most {MOST_CAPTURES} directions of links, named in live.capture_at, as each has a file"))
    }
}

/// Reads the section. Returns the keys that are given too.
pub(crate) fn read(section: &Section<'_>, links: &[Link]) -> Result<(Live, Fields), Error> {
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
        capture_at: section.read("capture_at", Vec::new(), |entry| capture_at(entry, links))?,
        capture_bytes: capture_bytes as u32,
        lateness,
        lateness_share: section
            .read("lateness_share", default.lateness_share, |entry| entry.number_within(0.0..=1.0))?,
        lateness_max: section
            .read("lateness_max", default.lateness_max.max(lateness), |entry| entry.span_within(lateness, longest))?,
        rate_error: section.read("rate_error", default.rate_error, |entry| entry.number_within(0.0..=1.0))?,
    };
    if let (Some(entry), Err(expected)) = (section.get("capture"), live.fits(links.len())) {
        return Err(entry.expected(expected));
    }
    let text = |word: &str| Written::Text(word.to_owned());
    let span = |span| Written::Text(units::write_span(span));
    let written = [
        ("qdisc", text(word_of(&MAKERS, live.qdisc))),
        ("family", text(word_of(&FAMILIES, live.family))),
        ("capture", text(word_of(&CAPTURES, live.capture))),
        ("capture_at", Written::List(live.capture_at.iter().map(|&(link, side)| place(&links[link], side)).collect())),
        ("capture_bytes", Written::Text(units::write_bytes(f64::from(live.capture_bytes)))),
        ("lateness", span(live.lateness)),
        ("lateness_share", Written::Number(live.lateness_share)),
        ("lateness_max", span(live.lateness_max)),
        ("rate_error", Written::Number(live.rate_error)),
    ];
    let given = written.into_iter().filter(|(key, _)| section.get(key).is_some()).collect();
    Ok((live, given))
}

/// Reads where packets are captured: `core` is both directions of that link, `core.reverse` one of them.
fn capture_at(entry: &Entry<'_>, links: &[Link]) -> Result<Vec<(usize, usize)>, Error> {
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    if links.len() == 1 {
        return Err(entry.expected("no such key with one link: packets.pcapng has both of its directions"));
    }
    let list = entry.list("a list of links and directions, such as [\"core\", \"home.reverse\"]")?;
    if list.is_empty() {
        return Err(entry.expected(format!("at least one of {}", names.join(", "))));
    }
    let mut places = Vec::new();
    for item in list {
        let word = item.text()?;
        let (name, direction) = word.split_once('.').map_or((word, None), |(name, direction)| (name, Some(direction)));
        let Some(link) = names.iter().position(|other| *other == name) else {
            return Err(item.unknown_word(name, &names, std::iter::empty()));
        };
        let sides = match direction {
            None => 0..2,
            Some(direction) => match DIRECTIONS.iter().position(|other| *other == direction) {
                Some(side) => side..side + 1,
                None => return Err(item.expected(format!("{name}, {name}.forward or {name}.reverse"))),
            },
        };
        for side in sides {
            if places.contains(&(link, side)) {
                return Err(item.expected(format!("each direction once: {name}.{} is there already", DIRECTIONS[side])));
            }
            places.push((link, side));
        }
    }
    Ok(places)
}

/// The text that stands for one direction of a link.
fn place(link: &Link, side: usize) -> Written {
    Written::Text(format!("{}.{}", link.name, DIRECTIONS[side]))
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
        let live = given.scenario().expect("whole").live.clone();
        assert_eq!((live.capture, live.lateness), (Capture::Both, Span::from_us(300)));
        let again = resolve(given.text(), "a.toml", &[], &|_| Err("no files".to_owned())).expect("it makes sense");
        assert_eq!(again.text(), given.text());
    }

    fn on_two_links(live: &str) -> Result<crate::Resolved, Error> {
        let text = format!(
            "[links.home]\nrate = \"10mbit\"\n[links.core]\nrate = \"20mbit\"\n\
             [[traffic]]\nkind = \"bulk\"\nroute = [\"home\", \"core\"]\n{live}"
        );
        resolve(&text, "a.toml", &[], &|_| Err("no files".to_owned()))
    }

    #[test]
    fn links_and_directions_to_capture_at_are_named() {
        let captured = |live: &str| {
            let found = on_two_links(live).expect("it makes sense");
            let again = resolve(found.text(), "a.toml", &[], &|_| Err("no files".to_owned())).expect("it makes sense");
            assert_eq!(again.text(), found.text());
            found.scenario().expect("whole").live.captured(2)
        };
        assert_eq!(captured("[live]\ncapture = \"both\""), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        let some = "[live]\ncapture = \"both\"\ncapture_at = [\"core\", \"home.reverse\"]";
        assert_eq!(captured(some), [(1, 0), (1, 1), (0, 1)]);
    }

    #[test]
    fn places_that_are_none_are_refused_in_a_line() {
        for (given, problem) in [
            ("[]", "expected at least one of home, core"),
            ("[\"cor\"]", "core"),
            ("[\"core.back\"]", "expected core, core.forward or core.reverse"),
            ("[\"core\", \"core.forward\"]", "expected each direction once: core.forward is there already"),
        ] {
            let error = on_two_links(&format!("[live]\ncapture_at = {given}")).expect_err("it makes none").to_string();
            assert!(error.contains("live.capture_at") && error.contains(problem) && !error.contains('\n'), "{error}");
        }
        let error = resolved("[live]\ncapture_at = [\"link\"]").expect_err("it makes none").to_string();
        assert!(error.contains("live.capture_at") && error.contains("no such key with one link"), "{error}");
    }

    #[test]
    fn most_is_no_less_than_usual() {
        let live =
            resolved("[live]\nlateness = \"20ms\"").expect("it makes sense").scenario().expect("whole").live.clone();
        assert_eq!(live.lateness_max, Span::from_ms(20));
        let error = resolved("[live]\nlateness = \"20ms\"\nlateness_max = \"1ms\"").expect_err("it makes none");
        assert!(error.to_string().contains("live.lateness_max"), "{error}");
    }
}
