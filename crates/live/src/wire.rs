//! This file has what a router reads of IP packets from the wire, and the one field that it writes.
//!
//! Lengths, the Differentiated Services codepoint and the ECN field (RFC 791, RFC 8200, RFC 2474, RFC 3168), and the
//! flow. The flow is a hash of what RFC 6438 calls the 5-tuple: addresses, protocol and, of TCP, UDP, UDP-Lite, SCTP
//! and DCCP, ports. Fragments count as having no ports, the first one too, so that all fragments of a datagram are of
//! one flow. Both directions of a flow have the same key, as they have in the simulator: the two ends are put in order
//! first. The hash is FNV-1a (64 bits) over the lower end, the higher end (address, then port, in network order) and
//! the protocol, mixed by the finalizer of splitmix64; other hosts could choose ports so that it collides, which in a
//! laboratory is no concern.
//!
//! Nothing here trusts a length: what is no well-formed IP packet is [`Malformed`], never a panic.

use aqm::Ack;
use base::{Ecn, FlowKey, maths};
use std::net::{IpAddr, SocketAddr};

/// What a router reads of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Size of the IP packet in bytes; what came after it was padding.
    pub size: u16,
    /// The ECN field.
    pub ecn: Ecn,
    /// The Differentiated Services codepoint.
    pub dscp: u8,
    /// The flow, the same both ways.
    pub flow: FlowKey,
    /// Whether it is a UDP datagram.
    pub is_udp: bool,
    /// Whether it opens a TCP connection: SYN without ACK.
    pub opens: bool,
    /// Whether it ends one: FIN or RST.
    pub ends: bool,
    /// Whether it ends both ways of it at once: RST.
    pub resets: bool,
}

/// Why something is no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// The version is neither 4 nor 6.
    Version,
    /// The header is incomplete, or says that it is shorter than a header is.
    Header,
    /// The packet says that it is longer than what came, or shorter than its own header: truncated, or a jumbogram
    /// (RFC 2675).
    Length,
}

/// Size of the smallest IP packet, bytes: a header of IPv4.
pub const SMALLEST: u32 = 20;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocols that begin with two ports: TCP, UDP, DCCP (RFC 4340), SCTP (RFC 9260), UDP-Lite (RFC 3828).
const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];
/// IPv6 extension headers of the form (next header, length in 8 bytes beyond the first 8): hop-by-hop options,
/// routing, destination options, mobility (RFC 8200, RFC 6275).
const EXTENSIONS: [u8; 4] = [0, 43, 60, 135];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// Extension headers that are looked past; a packet with more counts as one of an unknown protocol.
const MOST_EXTENSIONS: usize = 8;

/// What follows the IP header.
struct Upper<'a> {
    protocol: u8,
    is_fragment: bool,
    payload: &'a [u8],
}

/// A packet whose lengths are right.
struct Checked<'a> {
    packet: &'a [u8],
    is_v6: bool,
    /// Where the header ends.
    header: usize,
}

impl<'a> Checked<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Header)?;
        let (header, size, is_v6) = match first >> 4 {
            4 => {
                let header = usize::from(first & 15) * 4;
                if header < 20 || bytes.len() < header {
                    return Err(Malformed::Header);
                }
                (header, usize::from(word(bytes, 2)), false)
            }
            6 => {
                if bytes.len() < 40 {
                    return Err(Malformed::Header);
                }
                let payload = usize::from(word(bytes, 4));
                // RFC 2675 §3: a jumbogram says zero.
                if payload == 0 && bytes.len() > 40 {
                    return Err(Malformed::Length);
                }
                (40, 40 + payload, true)
            }
            _ => return Err(Malformed::Version),
        };
        if size < header || size > bytes.len() || size > usize::from(u16::MAX) {
            return Err(Malformed::Length);
        }
        Ok(Self { packet: &bytes[..size], is_v6, header })
    }

    fn traffic_class(&self) -> u8 {
        if self.is_v6 { self.packet[0] << 4 | self.packet[1] >> 4 } else { self.packet[1] }
    }

    /// Source and destination.
    fn addresses(&self) -> (&'a [u8], &'a [u8]) {
        if self.is_v6 {
            (&self.packet[8..24], &self.packet[24..40])
        } else {
            (&self.packet[12..16], &self.packet[16..20])
        }
    }

    fn upper(&self) -> Upper<'a> {
        let rest = &self.packet[self.header..];
        if !self.is_v6 {
            // RFC 791: more fragments, or an offset.
            let is_fragment = word(self.packet, 6) & 0x3fff != 0;
            return Upper { protocol: self.packet[9], is_fragment, payload: rest };
        }
        let (mut protocol, mut payload) = (self.packet[6], rest);
        for _ in 0..MOST_EXTENSIONS {
            let is_known = EXTENSIONS.contains(&protocol) || protocol == AUTHENTICATION;
            if protocol == FRAGMENT {
                return Upper { protocol: *payload.first().unwrap_or(&protocol), is_fragment: true, payload };
            }
            let (Some(&next), Some(&length), true) = (payload.first(), payload.get(1), is_known) else { break };
            // RFC 4302 §2.2: the authentication header counts in 4 bytes, less two.
            let length =
                if protocol == AUTHENTICATION { 4 * (usize::from(length) + 2) } else { 8 * (usize::from(length) + 1) };
            let Some(after) = payload.get(length..) else { break };
            (protocol, payload) = (next, after);
        }
        Upper { protocol, is_fragment: false, payload }
    }

    fn flow(&self, upper: &Upper<'_>) -> FlowKey {
        let has_ports = !upper.is_fragment && WITH_PORTS.contains(&upper.protocol) && upper.payload.len() >= 4;
        let ports: End<'_> = if has_ports { (&upper.payload[..2], &upper.payload[2..4]) } else { (&[], &[]) };
        let (source, destination) = self.addresses();
        key((source, ports.0), (destination, ports.1), upper.protocol)
    }
}

/// An end of a flow: address and port.
type End<'a> = (&'a [u8], &'a [u8]);

/// The key of the flow of `protocol` between two ends.
fn key<'a>(mut low: End<'a>, mut high: End<'a>, protocol: u8) -> FlowKey {
    if high < low {
        (low, high) = (high, low);
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in [low.0, low.1, high.0, high.1, &[protocol]] {
        for &byte in part {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    FlowKey(maths::mix64(hash))
}

/// The flow that [`parse`] finds in packets of `protocol`, one that has ports, between two ends of the same version of
/// IP, whichever way they go.
pub fn flow_key(source: SocketAddr, destination: SocketAddr, protocol: u8) -> FlowKey {
    let end = |address: SocketAddr| {
        let mut bytes = [0; 16];
        let length = match address.ip() {
            IpAddr::V4(ip) => {
                bytes[..4].copy_from_slice(&ip.octets());
                4
            }
            IpAddr::V6(ip) => {
                bytes = ip.octets();
                16
            }
        };
        (bytes, length, address.port().to_be_bytes())
    };
    let [source, destination] = [source, destination].map(end);
    key((&source.0[..source.1], &source.2), (&destination.0[..destination.1], &destination.2), protocol)
}

/// Reads what came from the wire.
///
/// # Errors
/// Where it is no whole, well-formed IP packet.
pub fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
    let checked = Checked::new(bytes)?;
    let class = checked.traffic_class();
    let upper = checked.upper();
    let is_tcp = upper.protocol == TCP && !upper.is_fragment && upper.payload.len() >= 20;
    let flags = if is_tcp { upper.payload[13] } else { 0 };
    Ok(Header {
        size: checked.packet.len() as u16,
        ecn: ecn_of(class),
        dscp: class >> 2,
        flow: checked.flow(&upper),
        is_udp: upper.protocol == UDP,
        opens: flags & (SYN | ACK) == SYN,
        ends: flags & (FIN | RST) != 0,
        resets: flags & RST != 0,
    })
}

/// Writes the ECN field of a packet that [`parse`] accepted, and brings IPv4's header checksum up to date (IPv6 has
/// none, and no transport's checksum covers the field).
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    if packet[0] >> 4 == 6 {
        packet[1] = packet[1] & !0x30 | (ecn as u8) << 4;
        return;
    }
    let before = word(packet, 0);
    packet[1] = packet[1] & !3 | ecn as u8;
    let checksum = updated(word(packet, 10), before, word(packet, 0));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The hosts that a packet which [`parse`] accepted comes from and goes to, as numbers: an IPv4 address is one, an IPv6
/// address is mixed down to one.
pub fn hosts(packet: &[u8]) -> Option<(u32, u32)> {
    let (source, destination) = Checked::new(packet).ok()?.addresses();
    let number = |address: &[u8]| {
        let (words, _) = address.as_chunks::<4>();
        let fold = |sum: u64, part: &[u8; 4]| maths::mix64(sum) ^ u64::from(u32::from_be_bytes(*part));
        words.iter().fold(0, fold) as u32
    };
    Some((number(source), number(destination)))
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;

/// What a packet acknowledges, of a TCP segment with the ACK flag and without SYN (RFC 9293 §3.1, RFC 2018 §3).
pub fn ack(packet: &[u8]) -> Option<Ack> {
    let upper = Checked::new(packet).ok()?.upper();
    let segment = upper.payload;
    if upper.protocol != TCP || upper.is_fragment || segment.len() < 20 {
        return None;
    }
    let (flags, header) = (segment[13], usize::from(segment[12] >> 4) * 4);
    if flags & ACK == 0 || flags & SYN != 0 || header < 20 || segment.len() < header {
        return None;
    }
    let mut ack = Ack {
        is_pure: segment.len() == header && flags & (FIN | RST | PSH | URG) == 0,
        echo: flags >> 6,
        number: long(segment, 8),
        ..Ack::default()
    };
    let mut options = &segment[20..header];
    while let Some(&kind) = options.first() {
        match kind {
            0 => break,
            1 => options = &options[1..],
            _ => {
                let length = options.get(1).map_or(0, |&length| usize::from(length));
                let Some(option) = options.get(..length).filter(|_| length >= 2) else {
                    ack.is_pure = false;
                    break;
                };
                match kind {
                    5 => {
                        for (slot, block) in ack.blocks.iter_mut().zip(option[2..].as_chunks::<8>().0) {
                            *slot = (long(block, 0), long(block, 4));
                            ack.count += 1;
                        }
                    }
                    8 => {}
                    _ => ack.is_pure = false,
                }
                options = &options[length..];
            }
        }
    }
    Some(ack)
}

/// A checksum after one of the 16-bit words under it became `after`: HC' = ~(~HC + ~m + m'), RFC 1624 eqn. 3.
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

fn ecn_of(class: u8) -> Ecn {
    match class & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP datagram of 115 bytes from 192.168.0.1 to 192.168.0.199; its header's sum is 0xb861, by hand:
    /// 4500 + 0073 + 4000 + 4011 + c0a8 + 0001 + c0a8 + 00c7 = 2479c, 479c + 2 = 479e, its complement b861.
    fn datagram() -> Vec<u8> {
        let mut packet = vec![
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
            0x00, 0xc7, 0x12, 0x34, 0x00, 0x35,
        ];
        packet.resize(0x73, 0);
        packet
    }

    fn swapped(packet: &[u8]) -> Vec<u8> {
        let mut back = packet.to_vec();
        let (addresses, ports) = if packet[0] >> 4 == 6 { (8, 40) } else { (12, 20) };
        let size = (ports - addresses) / 2;
        back[addresses..addresses + size].copy_from_slice(&packet[addresses + size..ports]);
        back[addresses + size..ports].copy_from_slice(&packet[addresses..addresses + size]);
        back[ports..ports + 2].copy_from_slice(&packet[ports + 2..ports + 4]);
        back[ports + 2..ports + 4].copy_from_slice(&packet[ports..ports + 2]);
        back
    }

    /// A TCP segment over IPv6 with 12 bytes of options room.
    fn segment() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 32, 6, 64];
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([0, 80, 0x9c, 0x40, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf0, 0x80, ACK | 0x40, 1, 0, 0, 0, 0, 0]);
        packet.extend([1, 1, 5, 10, 0, 0, 0, 16, 0, 0, 0, 32]);
        packet
    }

    /// RFC 1071: the sum over the header of a correct packet.
    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 = header.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_checksum_is_updated_as_in_the_rfc() {
        // RFC 1624 §4: a header with HC = 0xDD2F in which 0x5555 becomes 0x3285.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn ecn_is_read_and_written_with_the_checksum() {
        let mut packet = datagram();
        for (ecn, checksum) in [(Ecn::Ect0, 0xb85f), (Ecn::Ce, 0xb85e), (Ecn::NotEct, 0xb861), (Ecn::Ect1, 0xb860)] {
            set_ecn(&mut packet, ecn);
            let header = parse(&packet).expect("well formed");
            assert_eq!((header.ecn, header.dscp, header.size), (ecn, 0, 115));
            assert_eq!(word(&packet, 10), checksum);
        }
        let mut packet = segment();
        packet[0..2].copy_from_slice(&[0x6b, 0x80]);
        set_ecn(&mut packet, Ecn::Ce);
        let header = parse(&packet).expect("well formed");
        // Expedited forwarding, 46; the flow label beside it is as it was.
        assert_eq!((header.ecn, header.dscp, header.size, packet[1] & 15), (Ecn::Ce, 46, 72, 0));
    }

    #[test]
    fn a_flow_is_its_five_tuple_both_ways() {
        for packet in [datagram(), segment()] {
            let flow = |packet: &[u8]| parse(packet).expect("well formed").flow;
            assert_eq!(flow(&packet), flow(&swapped(&packet)));
            let (ports, protocol) = if packet[0] >> 4 == 6 { (40, 6) } else { (20, 9) };
            // A port, the other port, the protocol, and addresses.
            for at in [ports, ports + 3, protocol, ports - 1, ports - 5] {
                let mut other = packet.clone();
                other[at] = if at == protocol { 136 } else { other[at] ^ 1 };
                assert_ne!(flow(&packet), flow(&other), "byte {at}");
            }
        }
    }

    #[test]
    fn hosts_know_the_flows_of_their_packets() {
        let address = |text: &str| text.parse().expect("an address");
        let ends = [
            (datagram(), "192.168.0.1:4660", "192.168.0.199:53", UDP),
            (segment(), "[2001:db8::1]:80", "[2001:db8::2]:40000", TCP),
        ];
        for (packet, source, destination, protocol) in ends {
            let flow = parse(&packet).expect("well formed").flow;
            assert_eq!(flow_key(address(source), address(destination), protocol), flow);
            assert_eq!(flow_key(address(destination), address(source), protocol), flow);
        }
    }

    #[test]
    fn the_ends_of_connections_are_seen() {
        let seen = |flags: u8| {
            let mut packet = segment();
            packet[53] = flags;
            let header = parse(&packet).expect("well formed");
            (header.opens, header.ends)
        };
        assert_eq!(
            [SYN, SYN | ACK, ACK, ACK | FIN, RST].map(seen),
            [(true, false), (false, false), (false, false), (false, true), (false, true)]
        );
    }

    #[test]
    fn fragments_of_a_datagram_are_one_flow() {
        let flow = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = datagram();
            change(&mut packet);
            parse(&packet).expect("well formed").flow
        };
        let first = flow(&|packet| packet[6] = 0x20);
        let second = flow(&|packet| (packet[7], packet[20], packet[23]) = (0x0e, 7, 9));
        assert_eq!(first, second);
        assert_ne!(first, flow(&|_| {}));
        // Eight bytes of fragment header between, for IPv6.
        let mut packet = segment();
        packet.splice(40..40, [6, 0, 0, 1, 0, 0, 0, 9]);
        (packet[5], packet[6]) = (40, FRAGMENT);
        let mut next = packet.clone();
        (next[43], next[48], next[50]) = (0x10, 3, 4);
        assert_eq!(parse(&packet), parse(&next));
    }

    #[test]
    fn ports_are_found_behind_extension_headers() {
        let mut packet = segment();
        let flow = parse(&packet).expect("well formed").flow;
        packet.splice(40..40, [60, 0, 1, 4, 0, 0, 0, 0, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        (packet[5], packet[6]) = (56, 0);
        assert_eq!(parse(&packet).expect("well formed").flow, flow);
        assert!(ack(&packet).is_some());
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let cut = |bytes: &[u8]| parse(bytes).expect_err("malformed");
        assert_eq!(cut(&[]), Malformed::Header);
        assert_eq!(cut(&[0x15; 40]), Malformed::Version);
        assert_eq!(cut(&datagram()[..19]), Malformed::Header);
        assert_eq!(cut(&datagram()[..114]), Malformed::Length);
        assert_eq!(cut(&segment()[..39]), Malformed::Header);
        assert_eq!(cut(&segment()[..71]), Malformed::Length);
        let mut packet = datagram();
        packet[0] = 0x44;
        assert_eq!(cut(&packet), Malformed::Header);
        (packet[0], packet[3]) = (0x45, 19);
        assert_eq!(cut(&packet), Malformed::Length);
        let mut jumbo = segment();
        jumbo[5] = 0;
        assert_eq!(cut(&jumbo), Malformed::Length);
        // What comes after the packet is padding.
        let mut padded = datagram();
        padded.resize(200, 7);
        assert_eq!(parse(&padded), parse(&datagram()));
    }

    #[test]
    fn acknowledgements_are_read() {
        let expected =
            Ack { is_pure: true, echo: 1, number: 0xffff_fff0, blocks: [(16, 32), (0, 0), (0, 0), (0, 0)], count: 1 };
        assert_eq!(ack(&segment()), Some(expected));
        let changed = |at: usize, to: u8| {
            let mut packet = segment();
            packet[at] = to;
            ack(&packet)
        };
        assert_eq!(changed(53, ACK | SYN), None);
        assert_eq!(changed(53, FIN), None);
        assert!(!changed(53, ACK | FIN).expect("it acknowledges").is_pure);
        // An option of no known kind, and one that says that it is longer than the header.
        assert!(!changed(62, 30).expect("it acknowledges").is_pure);
        assert!(!changed(63, 200).expect("it acknowledges").is_pure);
        assert_eq!(ack(&datagram()), None);
        let hosts = hosts(&datagram()).expect("well formed");
        assert_ne!(hosts.0, hosts.1);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), version in 0_u8..8) {
            if let Some(first) = bytes.first_mut() {
                // Most bytes would be of no known version.
                *first = match version { 0..=3 => 0x45, 4..=6 => 0x60, _ => *first };
            }
            if bytes.len() > 5 {
                // And of no possible length.
                let length = bytes.len() as u8;
                match version {
                    0..=2 => (bytes[2], bytes[3]) = (0, length),
                    4 | 5 => (bytes[4], bytes[5]) = (0, length.saturating_sub(40)),
                    _ => {}
                }
            }
            let _ = ack(&bytes);
            let _ = hosts(&bytes);
            if let Ok(header) = parse(&bytes) {
                prop_assert!(usize::from(header.size) <= bytes.len());
                for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
                    let before = bytes.clone();
                    set_ecn(&mut bytes, ecn);
                    prop_assert_eq!(parse(&bytes), Ok(Header { ecn, ..header }));
                    if bytes[0] >> 4 == 4 {
                        let header = 4 * usize::from(bytes[0] & 15);
                        // Both zeros of one's complement say the same.
                        prop_assert_eq!(sum(&before[..header]) % 0xffff, sum(&bytes[..header]) % 0xffff);
                    }
                }
            }
        }
    }
}
