//! This file reads what routers see of a block's packets: their codepoint, their ECN field, and their hosts.

use crate::document::Data;
use crate::error::Error;
use crate::scenario::Hosts;
use crate::section::Entry;
use crate::written::Written;
use base::Ecn;

/// Codepoints with names: the class selectors of RFC 2474, AF of RFC 2597, EF of RFC 3246, VA (VOICE-ADMIT) of RFC
/// 5865, LE of RFC 8622.
const CODEPOINTS: [(&str, u8); 23] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

/// The default hosts of a block: each of its flows, users or arrivals has a pair of its own.
pub(crate) const OWN: Hosts = Hosts { clients: None, servers: None };
const OWN_WORD: &str = "own";
const MOST_HOSTS: u32 = 100_000_000;

/// Reads a codepoint by its name, in capitals or not, or its number.
pub(crate) fn read_dscp(entry: &Entry<'_>) -> Result<u8, Error> {
    let found = match entry.data() {
        Data::Integer(number) => u8::try_from(*number).ok().filter(|number| *number < 64),
        Data::Text(text) => CODEPOINTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, dscp)| *dscp),
        _ => None,
    };
    let names = || CODEPOINTS.map(|(name, _)| name).join(", ");
    found.ok_or_else(|| entry.expected(format!("a number from 0 to 63 or one of {}", names())))
}

/// Writes a codepoint, by its name if it has one.
pub(crate) fn write_dscp(dscp: u8) -> Written {
    match CODEPOINTS.iter().find(|(_, other)| *other == dscp) {
        Some((name, _)) => Written::Text((*name).to_owned()),
        None => Written::Integer(u64::from(dscp)),
    }
}

/// What `ect` may say of datagrams.
const FIELDS: [(&str, Ecn); 3] = [("not-ect", Ecn::NotEct), ("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1)];

/// Reads the ECN field of datagrams.
pub(crate) fn read_ect(entry: &Entry<'_>) -> Result<Ecn, Error> {
    entry.word(&FIELDS)
}

/// Writes the ECN field of datagrams.
pub(crate) fn write_ect(ect: Ecn) -> Written {
    let found = FIELDS.iter().find(|(_, field)| *field == ect);
    Written::Text(found.map_or("ce", |(name, _)| name).to_owned())
}

/// Reads `"own"`, or the number of hosts at each end, or a list of two numbers: clients, servers.
pub(crate) fn read_hosts(entry: &Entry<'_>) -> Result<Hosts, Error> {
    let expected =
        || entry.expected("own, a whole number of hosts at each end, or two such as [1, \"own\"]: clients, servers");
    let end = |data: &Data| match data {
        Data::Text(text) if text == OWN_WORD => Ok(None),
        Data::Integer(number) => match u32::try_from(*number) {
            Ok(hosts @ 1..=MOST_HOSTS) => Ok(Some(hosts)),
            _ => Err(entry.expected(format!("numbers of hosts from 1 to {MOST_HOSTS}"))),
        },
        _ => Err(expected()),
    };
    match entry.data() {
        Data::List(list) => match &list[..] {
            [clients, servers] => Ok(Hosts { clients: end(&clients.data)?, servers: end(&servers.data)? }),
            _ => Err(expected()),
        },
        both => end(both).map(|hosts| Hosts { clients: hosts, servers: hosts }),
    }
}

/// Writes hosts in the shortest form that is read back.
pub(crate) fn write_hosts(hosts: Hosts) -> Written {
    let end = |hosts: Option<u32>| match hosts {
        None => Written::Text(OWN_WORD.to_owned()),
        Some(hosts) => Written::Integer(u64::from(hosts)),
    };
    if hosts.clients == hosts.servers {
        return end(hosts.clients);
    }
    Written::List(vec![end(hosts.clients), end(hosts.servers)])
}
