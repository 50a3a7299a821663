//! This file knows which packets the kernel forwards from one device to the other, and gives them hops enough.

use std::borrow::Cow;

/// The hops that a packet with too few of them is given, so that it is forwarded. Nobody sees them.
const HOPS: u8 = 64;
/// First bytes of the hosts' IPv6 addresses, up to the side, see [`crate::Addressing`].
const PREFIX: [u8; 7] = [0xfd, 0x61, 0x71, 0x6d, 0, 0, 0];

/// Whether the kernel forwards a packet, which [`crate::wire::parse`] accepted, of `side` to the other one: from one
/// host's address to another's. It does not forward to groups, link-local addresses and places it has no route to.
pub fn is_forwarded(packet: &[u8], side: u8) -> bool {
    let side_of = |address: &[u8]| match (address.len(), address) {
        (4, [10, second, ..]) => Some(second >> 7),
        (16, [prefix @ .., _, _, _, _, _, _, _, _, _]) if *prefix == PREFIX => Some(address[7]),
        _ => None,
    };
    let (source, destination) =
        if packet[0] >> 4 == 6 { (&packet[8..24], &packet[24..40]) } else { (&packet[12..16], &packet[16..20]) };
    side_of(source).is_some() && side_of(destination) == Some(1 - side)
}

/// The bytes of a packet with hops enough to be forwarded. On its last hop a router would send an error back; a link
/// does not.
pub fn with_hops(packet: &[u8]) -> Cow<'_, [u8]> {
    let is_v6 = packet[0] >> 4 == 6;
    let at = if is_v6 { 7 } else { 8 };
    if packet[at] > 1 {
        return Cow::Borrowed(packet);
    }
    let mut packet = packet.to_vec();
    // One's complement sums: what the word at 8 grows by, the checksum shrinks by (RFC 1624).
    let grows = u16::from(HOPS - packet[at]) << 8;
    packet[at] = HOPS;
    if !is_v6 {
        let (checksum, borrows) = u16::from_be_bytes([packet[10], packet[11]]).overflowing_sub(grows);
        packet[10..12].copy_from_slice(&(checksum - u16::from(borrows)).to_be_bytes());
    }
    Cow::Owned(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Addressing;
    use scenario::Family;
    use std::net::IpAddr;

    fn packet(source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let of = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let mut packet = if source.is_ipv4() {
            vec![0x45, 0, 0, 20, 0, 1, 0, 0, 1, 17, 0, 0]
        } else {
            vec![0x60, 0, 0, 0, 0, 0, 17, 1]
        };
        packet.extend(of(source));
        packet.extend(of(destination));
        packet
    }

    #[test]
    fn hosts_packets_are_forwarded_and_no_others() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let addressing = Addressing::new(family);
            for side in 0..2 {
                let (here, there) = (addressing.host(side, 3, 999), addressing.own(1 - side));
                assert!(is_forwarded(&packet(here, there), side));
                assert!(!is_forwarded(&packet(here, there), 1 - side));
                assert!(!is_forwarded(&packet(here, addressing.host(side, 0, 0)), side));
            }
        }
        for (source, destination) in [
            ("10.0.0.1", "224.0.0.22"),
            ("0.0.0.0", "10.128.0.1"),
            ("10.0.0.1", "192.0.2.1"),
            ("::", "fd61:716d:0:1::1"),
            ("fe80::1", "ff02::2"),
        ] {
            let address = |text: &str| text.parse().expect("an address");
            assert!(!is_forwarded(&packet(address(source), address(destination)), 0), "{source} to {destination}");
        }
    }

    #[test]
    fn a_packet_on_its_last_hop_gets_more_and_its_checksum_is_right() {
        let address = |text: &str| text.parse().expect("an address");
        let sum = |header: &[u8]| {
            let words = header.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair)));
            let sum: u32 = words.sum();
            (sum & 0xffff) + (sum >> 16)
        };
        for last in 0..=255 {
            let mut last_hop = packet(address("10.0.0.1"), address(&format!("10.128.0.{last}")));
            let checksum = !(sum(&last_hop) as u16);
            last_hop[10..12].copy_from_slice(&checksum.to_be_bytes());
            let more = with_hops(&last_hop);
            assert_eq!((more[8], sum(&more)), (HOPS, 0xffff));
        }
        let six = packet(address("fd61:716d::1"), address("fd61:716d:0:1::1"));
        assert_eq!(with_hops(&six)[7], HOPS);
        let mut plenty = six;
        plenty[7] = 2;
        assert!(matches!(with_hops(&plenty), Cow::Borrowed(_)));
    }
}
