//! This tournament tells which of many packets would finish first, when all share a link and a packet takes the longer
//! the more of them there are. It is the packet of the least `start + size * time a byte * number of packets`.
//!
//! Packets meet in pairs, then the winners do, up to the root. Who wins depends on how many packets there are. So each
//! pair also keeps between which numbers of packets its result and all below it hold. A change costs the pairs on the
//! way from its packet to the root, and the pairs whose results the new number turns around (Basch, Guibas and
//! Hershberger, "Data Structures for Mobile Data", J. Algorithms 31(1), 1999: a kinetic tournament).

/// A packet in the tournament.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start_s: f64,
    size: f64,
    /// Of equal finishes the least is first.
    number: u64,
    item: u32,
}

impl Entry {
    /// What the first has most of, where a byte takes so long.
    fn rank(&self, s_per_byte: f64) -> (f64, u64) {
        (-self.start_s - self.size * s_per_byte, u64::MAX - self.number)
    }
}

/// A pair, or a packet alone.
#[derive(Clone, Copy, Debug)]
struct Node {
    winner: Option<Entry>,
    /// The numbers of packets between which the winners from here down are known; between none where something changed.
    from: u32,
    until: u32,
}

const CHANGED: Node = Node { winner: None, from: 1, until: 0 };
const EMPTY: Node = Node { winner: None, from: 0, until: u32::MAX };

/// Packets by their numbered items, one each.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// A binary tree: the root is 1, below `at` are `2 at` and `2 at + 1`, the packets are the second half.
    nodes: Vec<Node>,
    count: u32,
    s_per_byte: f64,
}

impl Tournament {
    /// No packets, on a link that alone takes so many seconds a byte.
    pub fn new(s_per_byte: f64) -> Self {
        Self { nodes: vec![EMPTY; 2], count: 0, s_per_byte }
    }

    /// From now on a byte takes so many seconds on the link alone: every pair is to meet again.
    pub fn set_pace(&mut self, s_per_byte: f64) {
        self.s_per_byte = s_per_byte;
        let leaves = self.nodes.len() / 2;
        self.nodes[1..leaves].fill(CHANGED);
    }

    /// Puts in the packet of `item`, in place of the one before if there is one.
    pub fn set(&mut self, item: u32, start_s: f64, size: u32, number: u64) {
        while self.nodes.len() / 2 <= item as usize {
            self.double();
        }
        self.put(item, Some(Entry { start_s, size: f64::from(size), number, item }));
    }

    /// Takes the packet of `item` out, if it is in.
    pub fn remove(&mut self, item: u32) {
        if (item as usize) < self.nodes.len() / 2 {
            self.put(item, None);
        }
    }

    /// The item of the packet that finishes first, and when, in seconds.
    pub fn first(&mut self) -> Option<(f64, u32)> {
        self.settle(1);
        let winner = self.nodes[1].winner?;
        Some((-winner.rank(self.s_per_byte * f64::from(self.count)).0, winner.item))
    }

    /// Makes room for as many again.
    fn double(&mut self) {
        let leaves = self.nodes.len() / 2;
        let mut nodes = vec![EMPTY; 4 * leaves];
        nodes[1..2 * leaves].fill(CHANGED);
        nodes[2 * leaves..3 * leaves].copy_from_slice(&self.nodes[leaves..]);
        self.nodes = nodes;
    }

    fn put(&mut self, item: u32, entry: Option<Entry>) {
        let mut at = self.nodes.len() / 2 + item as usize;
        self.count += u32::from(entry.is_some());
        self.count -= u32::from(self.nodes[at].winner.is_some());
        self.nodes[at].winner = entry;
        while at > 1 {
            at /= 2;
            self.nodes[at] = CHANGED;
        }
    }

    /// Brings the winner at `at` up to date, and all below that it depends on.
    fn settle(&mut self, at: usize) {
        if (self.nodes[at].from..=self.nodes[at].until).contains(&self.count) {
            return;
        }
        let [left, right] = [2 * at, 2 * at + 1].map(|below| {
            self.settle(below);
            self.nodes[below]
        });
        let (winner, from, until) = match (left.winner, right.winner) {
            (Some(left), Some(right)) => self.meet(left, right),
            (left, right) => (left.or(right), 0, u32::MAX),
        };
        let (from, until) = (from.max(left.from).max(right.from), until.min(left.until).min(right.until));
        self.nodes[at] = Node { winner, from, until };
    }

    /// The winner of a pair, and between which numbers of packets it is.
    fn meet(&self, left: Entry, right: Entry) -> (Option<Entry>, u32, u32) {
        let count = self.count;
        let s_per_byte = self.s_per_byte * f64::from(count);
        let (first, second) =
            if left.rank(s_per_byte) > right.rank(s_per_byte) { (left, right) } else { (right, left) };
        // Not so far that rounding could be more than what is allowed for it.
        let (least, most) = (count / 2, count.saturating_mul(2));
        let lead_s = second.start_s - first.start_s;
        let lead_s_each = (second.size - first.size) * self.s_per_byte;
        if lead_s == 0.0 && lead_s_each == 0.0 {
            return (Some(first), least, most);
        }
        // Each finish is rounded twice, and may then be equal to the other: half of the last place each, of eight here.
        let largest = first.size.max(second.size) * self.s_per_byte * f64::from(most);
        let doubt_s = 8.0 * f64::EPSILON * (first.start_s.max(second.start_s) + largest);
        if lead_s + lead_s_each * f64::from(count) <= doubt_s {
            return (Some(first), count, count);
        }
        // Where the lead is no more than the doubt.
        let turn = (doubt_s - lead_s) / lead_s_each;
        let (from, until) = match lead_s_each {
            0.0 => (least, most),
            // A number as large as the conversion makes it is beyond `count` or `most` in any case.
            each if each > 0.0 => (least.max((turn.max(-1.0) + 1.0).floor() as u32).min(count), most),
            _ => (least, most.min((turn - 1.0).ceil() as u32).max(count)),
        };
        (Some(first), from, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;

    #[test]
    fn the_first_is_who_would_be_found_by_asking_all() {
        let mut stream = Stream::named(1, "tournament");
        let s_per_byte = 8e-8;
        let mut tournament = Tournament::new(s_per_byte);
        let mut plain: Vec<Option<Entry>> = vec![None; 100];
        for number in 0..100_000 {
            // From few to many and back, sizes and starts now all different and now often the same.
            let items = 1 + (number / 1000) % 100;
            let item = stream.below(items) as u32;
            if stream.chance(0.5) {
                tournament.remove(item);
                plain[item as usize] = None;
            } else {
                let coarse = number % 2000 < 1000;
                let size = if coarse { 500 * (1 + stream.below(3)) } else { 40 + stream.below(1461) };
                let start_s = (number / 100) as f64 * 1e-3 + if coarse { 0.0 } else { stream.unit() * 1e-3 };
                tournament.set(item, start_s, size as u32, number);
                plain[item as usize] = Some(Entry { start_s, size: size as f64, number, item });
            }
            let now_s_per_byte = s_per_byte * plain.iter().flatten().count() as f64;
            let ranks = plain.iter().flatten().map(|entry| (entry.rank(now_s_per_byte), entry.item));
            let first = ranks.reduce(|best, other| if other.0 > best.0 { other } else { best });
            assert_eq!(tournament.first(), first.map(|((finish, _), item)| (-finish, item)), "at {number}");
        }
    }
}
