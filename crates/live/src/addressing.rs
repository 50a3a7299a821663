//! This file gives each host its address. Each block of traffic has a block of addresses on each side, enough for tens
//! of thousands of hosts, and a route can tell the blocks apart.
//!
//! ```text
//! IPv4   10.(128 side + block).(index >> 8).(index & 255)
//! IPv6   fd61:716d:0:side::block:index
//! ```
//!
//! `index` is a host's number, from 0, modulo [`HOSTS`] and plus one. Block [`OWN`] is each side's own: `.0.1` is what
//! foreign programs, pings and the check of the link use.

use scenario::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hosts of a block on one side; further ones share addresses with these.
pub const HOSTS: u32 = 65_000;
/// Most blocks of traffic.
pub const BLOCKS: usize = 100;
/// The block that is no traffic's.
pub const OWN: u16 = 127;

/// First groups of the IPv6 addresses: unique local (RFC 4193), with `aqm` in them.
const PREFIX: [u16; 3] = [0xfd61, 0x716d, 0];

/// Addresses of one version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addressing {
    family: Family,
}

impl Addressing {
    /// Addresses of `family`.
    pub fn new(family: Family) -> Self {
        Self { family }
    }

    /// The version of IP.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The address of host `number` of a block of traffic on `side`: 0 left, 1 right.
    pub fn host(&self, side: u8, block: u16, number: u32) -> IpAddr {
        self.at(side, block, (number % HOSTS + 1) as u16)
    }

    /// The address of `side` itself.
    pub fn own(&self, side: u8) -> IpAddr {
        self.at(side, OWN, 1)
    }

    /// The side, block and number of a host, counted from 0 and below [`HOSTS`]; `None` if it is no host's address.
    /// The sides' own addresses are hosts of block [`OWN`].
    pub fn place(&self, address: IpAddr) -> Option<(u8, u16, u32)> {
        let (side, block, index) = match address {
            IpAddr::V4(address) => {
                let [ten, second, high, low] = address.octets();
                (ten == 10).then_some((second >> 7, u16::from(second & 127), u16::from_be_bytes([high, low])))?
            }
            IpAddr::V6(address) => {
                let groups = address.segments();
                let is_ours = groups[..3] == PREFIX && groups[3] <= 1 && groups[4..6] == [0, 0] && groups[6] <= OWN;
                is_ours.then_some((groups[3] as u8, groups[6], groups[7]))?
            }
        };
        (1..=HOSTS).contains(&u32::from(index)).then(|| (side, block, u32::from(index) - 1))
    }

    /// All addresses of `side`, as ip-route(8) writes them.
    pub fn side(&self, side: u8) -> String {
        match self.family {
            Family::Ipv4 => format!("10.{}.0.0/9", 128 * side),
            Family::Ipv6 => format!("{:x}:{:x}:{:x}:{side:x}::/64", PREFIX[0], PREFIX[1], PREFIX[2]),
        }
    }

    /// All addresses of a block on `side`, as ip-route(8) writes them.
    pub fn block(&self, side: u8, block: u16) -> String {
        match self.family {
            Family::Ipv4 => format!("10.{}.0.0/16", 128 * u16::from(side) + block),
            Family::Ipv6 => format!("{:x}:{:x}:{:x}:{side:x}::{block:x}:0/112", PREFIX[0], PREFIX[1], PREFIX[2]),
        }
    }

    fn at(&self, side: u8, block: u16, index: u16) -> IpAddr {
        assert!(side <= 1 && block <= OWN, "there is no block {block} of addresses on side {side}");
        match self.family {
            Family::Ipv4 => {
                let [high, low] = index.to_be_bytes();
                Ipv4Addr::new(10, 128 * side + block as u8, high, low).into()
            }
            Family::Ipv6 => {
                let [first, second, third] = PREFIX;
                Ipv6Addr::new(first, second, third, side.into(), 0, 0, block, index).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_written_above() {
        let [v4, v6] = [Family::Ipv4, Family::Ipv6].map(Addressing::new);
        assert_eq!(v4.host(1, 3, 256).to_string(), "10.131.1.1");
        assert_eq!(v6.host(1, 3, 256).to_string(), "fd61:716d:0:1::3:101");
        assert_eq!((v4.own(0).to_string(), v4.own(1).to_string()), ("10.127.0.1".into(), "10.255.0.1".into()));
        assert_eq!((v4.side(1), v4.block(0, 2)), ("10.128.0.0/9".into(), "10.2.0.0/16".into()));
        assert_eq!((v6.side(1), v6.block(0, 2)), ("fd61:716d:0:1::/64".into(), "fd61:716d:0:0::2:0/112".into()));
    }

    #[test]
    fn an_address_tells_its_place() {
        for addressing in [Family::Ipv4, Family::Ipv6].map(Addressing::new) {
            for side in [0, 1] {
                for block in [0, 1, BLOCKS as u16, OWN] {
                    for number in [0, 254, 255, 256, HOSTS - 1] {
                        let address = addressing.host(side, block, number);
                        assert_eq!(addressing.place(address), Some((side, block, number)), "{address}");
                    }
                    assert_eq!(addressing.host(side, block, HOSTS + 7), addressing.host(side, block, 7));
                }
            }
        }
        let v4 = Addressing::new(Family::Ipv4);
        for other in ["11.0.0.1", "10.0.0.0", "10.0.255.255", "fd61:716d::2:0:0:1", "fd61:716d::80:1", "::1"] {
            assert_eq!(v4.place(other.parse().expect("an address")), None, "{other}");
        }
    }
}
