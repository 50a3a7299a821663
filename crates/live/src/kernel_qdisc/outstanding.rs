//! This file keeps the packets that a discipline of the kernel's holds, and finds which of them it has lost.
//!
//! The kernel says what comes out and how much was lost, but not which packets. However, no discipline of Linux lets a
//! packet overtake another one of its flow. (Those with a queue for each flow keep its order, and move packets in order
//! when they hash anew.) So when a packet comes out, all earlier ones of its flow that did not are lost. Where all
//! packets wait in one line, this holds for packets of any flow.
//!
//! Packets therefore stand in lines, one for all or one for each flow, in the order in which they went in. A packet
//! that comes out is looked for from the head of its line, and those passed over on the way are lost. Each packet is
//! passed over once, so that a packet costs the same however many wait.

use crate::frame::Frame;
use crate::wire::Header;
use base::{Ecn, FlowKey, Time};
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;
/// The number of chains of the hash table of lines; a power of two. There are at most as many lines as packets, so a
/// few a chain.
const CHAINS: usize = 1 << 14;
/// How many entries of packets that have gone may be left in the list of ages, beside as many as there are packets.
const LEFT_AMONG_AGES: usize = 1024;

/// The packets inside, in lines.
pub struct Outstanding {
    /// Whether all packets stand in one line.
    is_one_line: bool,
    entries: Slab<Entry>,
    lines: Slab<Line>,
    /// First line of each chain.
    chains: Vec<u32>,
    /// All packets by age, and some that have gone. A packet's number tells it from later ones in its place.
    ages: VecDeque<(u32, u64)>,
    number: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    frame: Frame,
    signature: u64,
    since: Time,
    /// The packet's number, from 1; 0 once it has gone.
    number: u64,
    line: u32,
    next: u32,
}

#[derive(Clone, Copy)]
struct Line {
    key: u64,
    head: u32,
    tail: u32,
    /// Next line of the chain.
    next: u32,
}

impl Outstanding {
    /// An empty discipline, which keeps all packets in one line or each flow's.
    pub fn new(is_one_line: bool) -> Self {
        Self {
            is_one_line,
            entries: Slab::new(),
            lines: Slab::new(),
            chains: vec![NONE; CHAINS],
            ages: VecDeque::new(),
            number: 0,
        }
    }

    /// Whether all packets stand in one line.
    pub fn is_one_line(&self) -> bool {
        self.is_one_line
    }

    /// How many packets went in, did not come out, and are not known to be lost.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Notes that `frame` went in at `now`.
    pub fn put(&mut self, frame: Frame, signature: u64, now: Time) {
        let is_low_latency = matches!(frame.ecn, Ecn::Ect1 | Ecn::Ce);
        let key = self.key(frame.flow, frame.dscp, is_low_latency);
        let line = self.line(key).unwrap_or_else(|| self.new_line(key));
        self.number += 1;
        let number = self.number;
        let at = self.entries.insert(Entry { frame, signature, since: now, number, line, next: NONE });
        let tail = std::mem::replace(&mut self.lines.items[line as usize].tail, at);
        if tail == NONE {
            self.lines.items[line as usize].head = at;
        } else {
            self.entries.items[tail as usize].next = at;
        }
        self.ages.push_back((at, number));
    }

    /// Finds the packet with this `header` and `signature`, which has come out. Returns it and the time when it went
    /// in;
    /// `None` if it never went in, or is known to be lost. The packets that it overtook go to `lost`, oldest first.
    pub fn take(&mut self, header: &Header, signature: u64, mut lost: impl FnMut(Frame)) -> Option<(Frame, Time)> {
        let line = |is_low_latency| self.line(self.key(header.flow, header.dscp, is_low_latency));
        let found = |line: u32| Some((line, self.find(line, signature)?));
        // A packet that carries CE may have been marked inside, and may have been ECT(0) or ECT(1) before.
        let (low_latency, classic) = match header.ecn {
            Ecn::Ect1 => (true, false),
            Ecn::Ce => (true, true),
            Ecn::NotEct | Ecn::Ect0 => (false, true),
        };
        let (line, at) = (low_latency.then(|| line(true)).flatten().and_then(found))
            .or_else(|| classic.then(|| line(false)).flatten().and_then(found))?;
        loop {
            let (first, entry) = self.pop(line);
            if first == at {
                return Some((entry.frame, entry.since));
            }
            lost(entry.frame);
        }
    }

    /// The first packet in `line` with this signature.
    fn find(&self, line: u32, signature: u64) -> Option<u32> {
        let mut at = self.lines.items[line as usize].head;
        while at != NONE && self.entries.items[at as usize].signature != signature {
            at = self.entries.items[at as usize].next;
        }
        (at != NONE).then_some(at)
    }

    /// Takes out the oldest packet if it went in before `before`.
    pub fn take_older(&mut self, before: Time) -> Option<Frame> {
        while let Some(&(at, number)) = self.ages.front() {
            let entry = self.entries.items[at as usize];
            if entry.number == number {
                if entry.since >= before {
                    return None;
                }
                // The oldest of all is the oldest of its line.
                self.pop(entry.line);
                return Some(entry.frame);
            }
            self.ages.pop_front();
        }
        None
    }

    /// Takes out the head of a line, and the line with it when that was the last.
    fn pop(&mut self, line: u32) -> (u32, Entry) {
        let at = self.lines.items[line as usize].head;
        let entry = self.entries.items[at as usize];
        self.entries.items[at as usize].number = 0;
        self.entries.remove(at);
        if entry.next == NONE {
            self.remove_line(line);
        } else {
            self.lines.items[line as usize].head = entry.next;
        }
        // The list of ages is tidied up when it is much longer than there are packets, however old the oldest one is.
        if self.ages.len() > 2 * self.len() + LEFT_AMONG_AGES {
            let entries = &self.entries.items;
            self.ages.retain(|&(at, number)| entries[at as usize].number == number);
        }
        (at, entry)
    }

    /// The key of a packet's line. Packets of a flow stand in one line, except where Linux may queue them apart: by
    /// codepoint (CAKE's tins) or by the ECN field (the two queues of RFC 9332, by RFC 9331 §5.1).
    fn key(&self, flow: FlowKey, dscp: u8, is_low_latency: bool) -> u64 {
        if self.is_one_line { 0 } else { flow.hash(u64::from(dscp) << 1 | u64::from(is_low_latency)) }
    }

    fn chain(key: u64) -> usize {
        key as usize & (CHAINS - 1)
    }

    fn line(&self, key: u64) -> Option<u32> {
        let mut line = self.chains[Self::chain(key)];
        while line != NONE && self.lines.items[line as usize].key != key {
            line = self.lines.items[line as usize].next;
        }
        (line != NONE).then_some(line)
    }

    fn new_line(&mut self, key: u64) -> u32 {
        let chain = Self::chain(key);
        let line = self.lines.insert(Line { key, head: NONE, tail: NONE, next: self.chains[chain] });
        self.chains[chain] = line;
        line
    }

    fn remove_line(&mut self, line: u32) {
        let Line { key, next, .. } = self.lines.items[line as usize];
        let chain = Self::chain(key);
        if self.chains[chain] == line {
            self.chains[chain] = next;
        } else {
            let mut before = self.chains[chain];
            while self.lines.items[before as usize].next != line {
                before = self.lines.items[before as usize].next;
            }
            self.lines.items[before as usize].next = next;
        }
        self.lines.remove(line);
    }
}

/// Places that are used again.
struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    fn insert(&mut self, item: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.items[at as usize] = item;
            return at;
        }
        self.items.push(item);
        (self.items.len() - 1) as u32
    }

    fn remove(&mut self, at: u32) {
        self.free.push(at);
    }

    fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(flow: u64, ecn: Ecn) -> Header {
        let flow = FlowKey(flow);
        Header { size: 100, ecn, dscp: 0, flow, is_udp: true, opens: false, ends: false, resets: false }
    }

    fn frame(flow: u64, place: u32, ecn: Ecn) -> Frame {
        Frame { flow: FlowKey(flow), step: net::Step::default(), place, size: 100, dscp: 0, ecn, side: 0, is_udp: true }
    }

    fn take(inside: &mut Outstanding, flow: u64, signature: u64, ecn: Ecn) -> (Option<u32>, Vec<u32>) {
        let mut lost = Vec::new();
        let found = inside.take(&header(flow, ecn), signature, |frame| lost.push(frame.place));
        (found.map(|(frame, _)| frame.place), lost)
    }

    #[test]
    fn what_is_overtaken_in_its_line_is_lost() {
        for (is_one_line, expected) in [(true, vec![0, 1, 2]), (false, vec![1])] {
            let mut inside = Outstanding::new(is_one_line);
            for place in 0..4 {
                inside.put(frame(u64::from(place % 2), place, Ecn::Ect0), u64::from(place), Time::ZERO);
            }
            assert_eq!(take(&mut inside, 1, 3, Ecn::Ce), (Some(3), expected));
            assert_eq!(take(&mut inside, 1, 3, Ecn::Ce), (None, vec![]));
        }
    }

    #[test]
    fn alike_packets_leave_in_the_order_in_which_they_came() {
        let mut inside = Outstanding::new(false);
        (0..3).for_each(|place| inside.put(frame(7, place, Ecn::NotEct), 1, Time::ZERO));
        for place in 0..3 {
            assert_eq!(take(&mut inside, 7, 1, Ecn::NotEct), (Some(place), vec![]));
        }
        assert_eq!(inside.len(), 0);
    }

    #[test]
    fn queues_of_low_latency_are_lines_of_their_own() {
        // RFC 9332: the classic packet waits while those of its flow that are ECT(1) pass; one of them was marked.
        let mut inside = Outstanding::new(false);
        inside.put(frame(7, 0, Ecn::Ect0), 0, Time::ZERO);
        inside.put(frame(7, 1, Ecn::Ect1), 1, Time::ZERO);
        inside.put(frame(7, 2, Ecn::Ect1), 2, Time::ZERO);
        assert_eq!(take(&mut inside, 7, 1, Ecn::Ce), (Some(1), vec![]));
        assert_eq!(take(&mut inside, 7, 2, Ecn::Ect1), (Some(2), vec![]));
        assert_eq!(take(&mut inside, 7, 0, Ecn::Ce), (Some(0), vec![]));
    }

    #[test]
    fn the_oldest_goes_first_and_the_young_stay() {
        let mut inside = Outstanding::new(false);
        let at = |ns: u32| Time::from_ns(u64::from(ns));
        (0..4).for_each(|place| inside.put(frame(u64::from(place), place, Ecn::NotEct), 9, at(place)));
        assert_eq!(take(&mut inside, 1, 9, Ecn::NotEct).0, Some(1));
        let older: Vec<u32> = std::iter::from_fn(|| inside.take_older(at(3))).map(|frame| frame.place).collect();
        assert_eq!((older, inside.len()), (vec![0, 2], 1));
    }

    proptest! {
        /// Against a list that is searched: flows come and go, packets are lost anywhere.
        #[test]
        fn lines_do_what_a_list_does(
            steps in prop::collection::vec((0_u64..5, any::<bool>(), 0_usize..6), 1..400),
            is_one_line in any::<bool>(),
        ) {
            let mut inside = Outstanding::new(is_one_line);
            let mut list: Vec<(u64, u32)> = Vec::new();
            for (number, (flow, is_put, skip)) in (0_u32..).zip(steps) {
                let line = |of: u64| is_one_line || of == flow;
                if is_put {
                    inside.put(frame(flow, number, Ecn::NotEct), u64::from(number), Time::ZERO);
                    list.push((flow, number));
                } else if let Some(&(of, place)) = list.iter().filter(|(of, _)| line(*of)).nth(skip) {
                    let before = list.iter().filter(|(of, other)| line(*of) && *other < place).map(|(_, place)| *place);
                    let expected = (Some(place), before.collect::<Vec<u32>>());
                    prop_assert_eq!(take(&mut inside, of, u64::from(place), Ecn::NotEct), expected);
                    list.retain(|(of, other)| !line(*of) || *other > place);
                }
                prop_assert_eq!(inside.len(), list.len());
            }
        }
    }
}
