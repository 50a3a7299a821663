//! A [`Row`] holds packets on their way that are put in nearly in the order in which they are due, and gives them out
//! in their order.
//!
//! Packets that leave a link one after the other reach their hosts one after the other, but for a small one that has
//! crossed its access link before a large one has. So a packet finds its place at the end of the row, or a few places
//! before. The order is that of a [`Calendar`](crate::calendar::Calendar).
//!
//! ```text
//!   gone ──┐ first
//!   · · · ·│ 07 │ 09 │ 12 │ 15 │ 16 │ ◀─ push 13: goes before 15 and 16
//!          └─▶ the next to reach its host
//! ```

use crate::packets::Parcel;
use aqm::Due;
use base::Time;

/// So many packets have gone at least, and as many as are left, before their places are freed, which moves all others.
const CLOSES_UP: usize = 256;

/// A row of packets by the time when they are due.
#[derive(Default)]
pub struct Row {
    /// In order. Those before `gone` have gone.
    packets: Vec<Due<Parcel>>,
    gone: usize,
}

impl Row {
    /// Adds a packet of `source` that is due at `at`, which is not before what has gone.
    #[inline]
    pub fn push(&mut self, at: Time, source: u32, packet: Parcel) {
        if self.gone >= CLOSES_UP && self.gone >= self.packets.len() - self.gone {
            self.close_up();
        }
        let due = Due { at, source, packet };
        let mut place = self.packets.len();
        self.packets.push(due);
        while place > self.gone {
            let before = self.packets[place - 1];
            if (before.at, before.source) <= (at, source) {
                break;
            }
            self.packets[place] = before;
            place -= 1;
            self.packets[place] = due;
        }
    }

    /// The next packet; `None` if there is none.
    #[inline]
    pub fn first(&self) -> Option<&Due<Parcel>> {
        self.packets.get(self.gone)
    }

    /// The packet that so many others go before; `None` if there is none.
    #[inline]
    pub fn ahead(&self, others: usize) -> Option<&Due<Parcel>> {
        self.packets.get(self.gone + others)
    }

    /// Removes the first packet.
    #[inline]
    pub fn went(&mut self) {
        self.gone += 1;
    }

    /// Frees the places of packets that have gone.
    #[inline(never)]
    fn close_up(&mut self) {
        self.packets.drain(..self.gone);
        self.gone = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Ecn, FlowKey};
    use net::Step;

    /// As behind a link with a long delay: what has gone is no more than what waits, and each packet is moved once.
    #[test]
    fn a_long_row_keeps_its_order_and_its_room() {
        const WAITING: u64 = 5_000;
        let packet = Parcel::tcp(FlowKey(1), Step::from_number(0), 0, 1_500, Ecn::NotEct, 0, 0);
        let mut row = Row::default();
        let mut room = 0;
        for k in 0..8 * WAITING {
            // Every third packet is a little earlier than the one before it.
            row.push(Time::from_ns(10 * k - if k % 3 == 2 { 15 } else { 0 }), 0, packet);
            room = room.max(row.packets.len());
            if k >= WAITING {
                let at = row.first().expect("many wait").at;
                row.went();
                assert!(row.first().is_some_and(|next| next.at >= at));
            }
        }
        assert!(room as u64 <= 2 * WAITING + 2);
    }
}
