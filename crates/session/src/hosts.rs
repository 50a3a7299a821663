//! Between which hosts a source sends.

use scenario::{Direction, Scenario, Traffic};

/// The hosts between which source or arrival `number` of a block sends, whose connections are opened from `client`:
/// left, right. Numbers of their own among the hosts of that block on that side.
pub fn hosts_within(traffic: &Traffic, number: u32, client: u8) -> [u32; 2] {
    let both = u32::from(traffic.direction == Direction::Both);
    // Servers of one side's clients are not those of the other's.
    place(traffic, number, client).map(|index| index << both | u32::from(client) & both)
}

/// The same, numbered through: a host's number is its own, whatever its block and side.
pub fn hosts(scenario: &Scenario, block: u16, number: u32, client: u8) -> [u32; 2] {
    let [left, right] = place(&scenario.traffic[block as usize], number, client);
    let blocks = scenario.traffic.len() as u32;
    let host = |index: u32, side: u32| {
        index.wrapping_mul(blocks).wrapping_add(u32::from(block)).wrapping_mul(4) | side << 1 | u32::from(client)
    };
    [host(left, 0), host(right, 1)]
}

/// A bound below which the numbers of a scenario's hosts lie, where no end of any block has more than `most`.
pub fn host_numbers(scenario: &Scenario, most: u32) -> u64 {
    (u64::from(most) * scenario.traffic.len() as u64 * 4).min(1 << u32::BITS)
}

/// Where source or arrival `number` stands among the clients and servers of a block: left, right.
fn place(traffic: &Traffic, number: u32, client: u8) -> [u32; 2] {
    // Of sources that alternate between the sides, each side counts its own.
    let alternates = traffic.direction == Direction::Both && !traffic.workload.numbers_arrivals();
    let number = if alternates { number / 2 } else { number };
    [0, 1].map(|side| {
        let hosts = if side == client { traffic.hosts.clients } else { traffic.hosts.servers };
        hosts.map_or(number, |hosts| number % hosts)
    })
}
