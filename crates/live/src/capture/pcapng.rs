//! This file writes the blocks of a pcapng file into bytes: little-endian, one section, nanoseconds, raw IP.
//!
//! draft-ietf-opsawg-pcapng: §4.1 section header, §4.2 interface description, §4.3 enhanced packet, §4.6 interface
//! statistics; §3.5 options. Written here and not by a library: a packet is encoded straight into the bytes that go to
//! the disk, its ECN field rewritten there, and nothing is allocated for its comment.

use base::Time;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// Begins with an IPv4 or IPv6 header (tcpdump.org/linktypes.html).
const LINKTYPE_RAW: u16 = 101;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SECTION_OS: u16 = 3;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_SPEED: u16 = 8;
const INTERFACE_RESOLUTION: u16 = 9;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_MISSED: u16 = 5;

/// The beginning of the file: which `application` wrote it on which `system`, and what there is to say of it.
pub fn section(out: &mut Vec<u8>, application: &str, system: &str, comment: &str) {
    block(out, SECTION_HEADER, |out| {
        word(out, BYTE_ORDER);
        half(out, 1);
        half(out, 0);
        // The length of the section is not known yet.
        out.extend(u64::MAX.to_le_bytes());
        option(out, SECTION_OS, system.as_bytes());
        option(out, SECTION_APPLICATION, application.as_bytes());
        option(out, COMMENT, comment.as_bytes());
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// A point at which packets are seen, by its `name`; the first one is number 0. No more than `snap` bytes of a packet
/// are kept. Its packets come at `rate_bps` at most.
pub fn interface(out: &mut Vec<u8>, name: &str, snap: u32, rate_bps: u64) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        half(out, LINKTYPE_RAW);
        half(out, 0);
        word(out, snap);
        option(out, INTERFACE_NAME, name.as_bytes());
        option(out, INTERFACE_SPEED, &rate_bps.to_le_bytes());
        // Ten to the power of minus nine seconds.
        option(out, INTERFACE_RESOLUTION, &[9]);
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// A packet of `size` bytes that was at `interface` at `at`, of which `bytes` are kept. Returns where these lie.
pub fn packet(
    out: &mut Vec<u8>,
    interface: u32,
    at: Time,
    bytes: &[u8],
    size: u32,
    comment: Option<&str>,
) -> std::ops::Range<usize> {
    let mut kept = 0..0;
    block(out, ENHANCED_PACKET, |out| {
        word(out, interface);
        time(out, at);
        word(out, bytes.len() as u32);
        word(out, size);
        kept = out.len()..out.len() + bytes.len();
        out.extend_from_slice(bytes);
        pad(out);
        if let Some(comment) = comment {
            option(out, COMMENT, comment.as_bytes());
            option(out, END_OF_OPTIONS, &[]);
        }
    });
    kept
}

/// How many packets `interface` saw until `at`, and how many of them did not get into the file.
pub fn statistics(out: &mut Vec<u8>, interface: u32, at: Time, seen: u64, missed: u64) {
    block(out, INTERFACE_STATISTICS, |out| {
        word(out, interface);
        time(out, at);
        option(out, STATISTICS_RECEIVED, &seen.to_le_bytes());
        option(out, STATISTICS_MISSED, &missed.to_le_bytes());
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// A block: its kind, its length, what `body` writes, its length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    word(out, kind);
    word(out, 0);
    body(out);
    let length = (out.len() - begin + 4) as u32;
    word(out, length);
    out[begin + 4..begin + 8].copy_from_slice(&length.to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // A text that is longer than a length can say is cut.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    half(out, code);
    half(out, value.len() as u16);
    out.extend_from_slice(value);
    pad(out);
}

/// Everything in a file begins at a multiple of four bytes.
fn pad(out: &mut Vec<u8>) {
    let length = out.len().next_multiple_of(4);
    out.resize(length, 0);
}

fn time(out: &mut Vec<u8>, at: Time) {
    word(out, (at.ns() >> 32) as u32);
    word(out, at.ns() as u32);
}

fn word(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

fn half(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_block_is_as_the_format_has_it() {
        let mut out = Vec::new();
        let kept = packet(&mut out, 2, Time::from_ns(0x1_0000_0002), &[1, 2, 3, 4, 5], 1500, Some("lost"));
        #[rustfmt::skip]
        let expected = [
            6, 0, 0, 0,  52, 0, 0, 0,  2, 0, 0, 0,  1, 0, 0, 0,  2, 0, 0, 0,  5, 0, 0, 0,  0xdc, 5, 0, 0,
            1, 2, 3, 4,  5, 0, 0, 0,
            1, 0, 4, 0,  b'l', b'o', b's', b't',  0, 0, 0, 0,
            52, 0, 0, 0,
        ];
        assert_eq!(out, expected);
        assert_eq!(out[kept], [1, 2, 3, 4, 5]);
    }

    #[test]
    fn every_block_says_its_length_twice_and_ends_at_four_bytes() {
        let mut out = Vec::new();
        section(&mut out, "aqmlab", "Linux", "x");
        interface(&mut out, "forward", 128, 20_000_000);
        packet(&mut out, 0, Time::ZERO, &[0; 41], 41, None);
        statistics(&mut out, 0, Time::ZERO, 7, 1);
        let length = |at: usize| u32::from_le_bytes(out[at..at + 4].try_into().expect("four bytes")) as usize;
        let (mut at, mut kinds) = (0, Vec::new());
        while at < out.len() {
            let long = length(at + 4);
            assert_eq!((long % 4, length(at + long - 4)), (0, long));
            kinds.push(length(at) as u32);
            at += long;
        }
        assert_eq!(at, out.len());
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET, INTERFACE_STATISTICS]);
    }
}
