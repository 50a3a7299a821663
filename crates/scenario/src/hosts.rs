//! The keys of `[tcp]`: a stack profile and what a scenario changes of it.

use crate::document::Data;
use crate::error::Error;
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use base::{Ecn, Span};
use tcp::{Config, Control, EcnMode, Recovery};

/// Every key.
pub(crate) const KEYS: &[&str] = &[
    "stack",
    "cc",
    "ecn",
    "ect",
    "window",
    "mss",
    "initial_window",
    "handshake",
    "limited_transmit",
    "byte_counting",
    "idle_restart",
    "granularity",
    "rto_initial",
    "rto_min",
    "rto_max",
    "syn_timer",
    "synack_timer",
    "delayed_ack",
    "delayed_ack_timeout",
];

/// The profile of a scenario that names none: the hosts of the web studies.
const DEFAULT_STACK: &str = "freebsd4";
const CC: [(&str, (Recovery, Control)); 5] = [
    ("reno", (Recovery::Reno, Control::Reno)),
    ("newreno", (Recovery::NewReno, Control::Reno)),
    ("sack", (Recovery::Sack, Control::Reno)),
    ("cubic", (Recovery::Sack, Control::Cubic)),
    ("dctcp", (Recovery::Sack, Control::Dctcp)),
];
const ECN: [(&str, EcnMode); 4] =
    [("off", EcnMode::Off), ("on", EcnMode::On), ("plus", EcnMode::Plus), ("plus-tryonce", EcnMode::PlusTryOnce)];
/// The field of ECN-capable packets.
const ECT: [(&str, Ecn); 2] = [("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1)];
const SHORTEST: Span = Span::from_us(1);
const LONGEST: Span = Span::from_secs(3600);

/// Reads the hosts of a block: its own keys before those of `[tcp]`, those before the profile's.
pub(crate) fn read(defaults: &Section<'_>, block: Option<&Section<'_>>) -> Result<Config, Error> {
    let get = |name: &str| block.and_then(|block| block.get(name)).or_else(|| defaults.get(name));
    let stack = get("stack").map_or(Ok(DEFAULT_STACK), |entry| stack(&entry))?;
    let mut config = (tcp::profile(stack).expect("the profile was looked up").config)();
    if let Some(entry) = get("cc") {
        (config.recovery, config.control) = entry.word(&CC)?;
        if config.control == Control::Dctcp {
            // RFC 8257: there is no DCTCP without ECN, and in its networks every packet is ECN-capable.
            config.ecn = EcnMode::On;
            (config.ect_on_retransmit, config.ect_on_control) = (true, true);
        }
    }
    if let Some(entry) = get("ecn") {
        config.ecn = entry.word(&ECN)?;
    }
    if let Some(entry) = get("ect") {
        config.ect = entry.word(&ECT)?;
    }
    if let Some(entry) = get("mss") {
        config.mss = u32::try_from(entry.size_within(64..=65_000)?).expect("the range ends below 2^32");
    }
    if let Some(entry) = get("window") {
        config.window = entry.size_within(1..=1 << 40)?;
    }
    if let Some(entry) = get("initial_window") {
        config.initial_window = entry.count(1..=10_000)?;
    }
    for (name, flag) in [
        ("handshake", &mut config.handshake),
        ("limited_transmit", &mut config.limited_transmit),
        ("byte_counting", &mut config.byte_counting),
        ("idle_restart", &mut config.idle_restart),
    ] {
        if let Some(entry) = get(name) {
            *flag = entry.flag()?;
        }
    }
    for (name, span) in [
        ("granularity", &mut config.granularity),
        ("rto_initial", &mut config.rto_initial),
        ("rto_min", &mut config.rto_min),
        ("rto_max", &mut config.rto_max),
        ("syn_timer", &mut config.syn_timer.base),
        ("synack_timer", &mut config.synack_timer.base),
        ("delayed_ack_timeout", &mut config.delayed_ack.timeout),
    ] {
        if let Some(entry) = get(name) {
            *span = entry.span_within(SHORTEST, LONGEST)?;
        }
    }
    if let Some(entry) = get("delayed_ack") {
        config.delayed_ack.every = delayed_ack(&entry)?;
    }
    agree(&config, get)?;
    Ok(config)
}

/// Writes every key.
pub(crate) fn write(config: &Config) -> Fields {
    let (cc, _) = CC
        .iter()
        .find(|(_, parts)| *parts == (config.recovery, config.control))
        .expect("a profile's recovery and control have a name");
    let (ecn, _) = ECN.iter().find(|(_, mode)| *mode == config.ecn).expect("every mode has a name");
    let (ect, _) = ECT.iter().find(|(_, field)| *field == config.ect).expect("a profile is ECT(0) or ECT(1)");
    let text = |text: &str| Written::Text(text.to_owned());
    let span = |span| Written::Text(units::write_span(span));
    let size = |bytes: u64| Written::Text(units::write_bytes(bytes as f64));
    vec![
        ("stack", text(config.stack)),
        ("cc", text(cc)),
        ("ecn", text(ecn)),
        ("ect", text(ect)),
        ("window", size(config.window)),
        ("mss", size(u64::from(config.mss))),
        ("initial_window", Written::Integer(u64::from(config.initial_window))),
        ("handshake", Written::Flag(config.handshake)),
        ("limited_transmit", Written::Flag(config.limited_transmit)),
        ("byte_counting", Written::Flag(config.byte_counting)),
        ("idle_restart", Written::Flag(config.idle_restart)),
        ("granularity", span(config.granularity)),
        ("rto_initial", span(config.rto_initial)),
        ("rto_min", span(config.rto_min)),
        ("rto_max", span(config.rto_max)),
        ("syn_timer", span(config.syn_timer.base)),
        ("synack_timer", span(config.synack_timer.base)),
        (
            "delayed_ack",
            match config.delayed_ack.every {
                1 => text("off"),
                every => Written::Integer(u64::from(every)),
            },
        ),
        ("delayed_ack_timeout", span(config.delayed_ack.timeout)),
    ]
}

fn stack(entry: &Entry<'_>) -> Result<&'static str, Error> {
    let table: Vec<_> = tcp::profiles().iter().map(|profile| (profile.name, profile.name)).collect();
    entry.word(&table)
}

/// `"off"`, or how many segments are acknowledged at once.
fn delayed_ack(entry: &Entry<'_>) -> Result<u32, Error> {
    match entry.data() {
        Data::Text(text) if text == "off" => Ok(1),
        Data::Integer(1..=64) => entry.count(1..=64),
        _ => Err(entry.expected("off or a number of segments from 1 to 64")),
    }
}

/// Refuses values that are each in range but do not fit together; names one that was given.
fn agree<'a>(config: &Config, get: impl Fn(&str) -> Option<Entry<'a>>) -> Result<(), Error> {
    let blame = |names: [&str; 2], expected: String| match names.into_iter().find_map(&get) {
        Some(entry) => Err(entry.expected(expected)),
        None => unreachable!("a profile agrees with itself"),
    };
    if config.window < u64::from(config.mss) {
        return blame(["window", "mss"], format!("a window of at least one segment of {} bytes", config.mss));
    }
    if config.control == Control::Dctcp && config.ecn != EcnMode::On {
        return blame(["ecn", "cc"], "ecn on, without which there is no dctcp".to_owned());
    }
    let longest = units::write_span(config.rto_max);
    if config.rto_min > config.rto_max {
        return blame(["rto_min", "rto_max"], format!("rto_min not above rto_max, which is {longest}"));
    }
    if config.rto_initial > config.rto_max {
        return blame(["rto_initial", "rto_max"], format!("rto_initial not above rto_max, which is {longest}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_written_once() {
        for profile in tcp::profiles() {
            let written: Vec<&str> = write(&(profile.config)()).into_iter().map(|(key, _)| key).collect();
            assert_eq!(written, KEYS, "{}", profile.name);
        }
    }
}
