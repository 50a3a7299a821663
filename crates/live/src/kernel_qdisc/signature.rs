//! A signature stands for the bytes of a packet while the kernel has it, so that the packet is known when it comes out.

use base::maths;

/// The bytes that count: the headers of IP and TCP with all options, and the first bytes of the payload.
const MOST: usize = 160;

/// A hash of what a router leaves as it is in a packet that [`crate::wire::parse`] accepted: its length, addresses,
/// identification, protocol, and what follows the IP header. It leaves out the Differentiated Services field with ECN,
/// the time to live, and IPv4's checksum. Packets that are alike in all of this have the same signature.
pub fn signature(packet: &[u8]) -> u64 {
    let packet_end = packet.len().min(MOST);
    let mut hash = packet.len() as u64;
    if packet[0] >> 4 == 6 {
        // Length of the payload, next header; the flow label is of the flow, and so are the addresses.
        hash = mixed(hash, &packet[4..7]);
        packet[8..packet_end].chunks(8).fold(hash, mixed)
    } else {
        // Identification, flags and fragment offset; protocol.
        hash = mixed(hash, &packet[4..8]);
        hash = mixed(hash, &packet[9..10]);
        packet[12..packet_end].chunks(8).fold(hash, mixed)
    }
}

fn mixed(hash: u64, bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    maths::mix64(hash ^ u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;
    use base::Ecn;

    fn datagram(family: u8, number: u16) -> Vec<u8> {
        let mut packet = if family == 4 {
            vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]
        } else {
            vec![0x60, 2, 3, 4, 0, 0, 17, 64]
        };
        packet.resize(if family == 4 { 20 } else { 40 }, 7);
        packet.extend([0, 9, 0, 9, 0, 28, 0, 0]);
        packet.resize(packet.len() + 20, 0);
        let end = packet.len();
        packet[end - 2..].copy_from_slice(&number.to_be_bytes());
        let (at, size) = if family == 4 { (2, end) } else { (4, end - 40) };
        packet[at..at + 2].copy_from_slice(&(size as u16).to_be_bytes());
        packet
    }

    #[test]
    fn what_a_router_changes_does_not_count_and_all_else_does() {
        for (family, hops) in [(4, 8), (6, 7)] {
            let packet = datagram(family, 1);
            let mut other = packet.clone();
            wire::set_ecn(&mut other, Ecn::Ce);
            other[hops] -= 1;
            if family == 4 {
                other[10..12].copy_from_slice(&[0xab, 0xcd]);
            }
            assert_eq!(signature(&packet), signature(&other));
            let counts = if family == 4 { 4..10 } else { 4..7 };
            let counts =
                counts.filter(|&at| at != hops).chain(if family == 4 { 12..packet.len() } else { 8..packet.len() });
            for at in counts {
                let mut other = packet.clone();
                other[at] ^= 1;
                assert_ne!(signature(&packet), signature(&other), "byte {at} of IPv{family}");
            }
        }
        assert_ne!(signature(&datagram(4, 1)), signature(&datagram(4, 2)));
    }
}
