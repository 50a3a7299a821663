//! The counters of bytes that the AccECN option carries (RFC 9768 §3.2.3): what a receiver keeps and tells, and what a
//! sender reads. The option says how many bytes came marked, where the header's three bits say how many packets did,
//! modulo eight.
//!
//! | RFC 9768 | here |
//! |---|---|
//! | `r.e0b`, `r.ceb`, `r.e1b` | `counts` of [`Counted`] |
//! | `s.e0b`, `s.ceb`, `s.e1b` | `counts` of [`Learnt`] |
//! | change-triggered acknowledgements (§3.2.3.3) | [`Counted::count`] answers that one is due |
//! | beacons, three a round trip (§3.2.3.3) | [`Rfc::is_due`]: every quarter of one |
//! | Appendix A.1, a counter that went round | [`Learnt::read`] |
//! | Appendix A.2, a count of packets that may have gone round | [`packets_of`] |
//!
//! By the RFC's rules an option goes on a FIN without data, on the first SYN/ACK and on pure acknowledgements: when the
//! bytes of another field begin, when more were marked, and as a beacon. It is full where at most one report leaves
//! room for that, has two counters beside two reports and is left out beside three. The field that came last is told
//! first: with ECT(1) that is AccECN1.
//!
//! By Linux's rules (`option_linux.rs`) it goes on whatever leaves room, and is read in another way (`wraps_linux.rs`).
//!
//! # Deviations
//! - By the RFC's rules segments with data carry none, whose acknowledgements ride on data alone.
//! - A client does not test whether its own options are lost (§3.2.3.2.2).
//! - Beside three reports an option is left out without timestamps too, where it would fit.

use super::option_linux::Linux;
use super::wraps_linux::{Arrival, Foreseen, Usual};
use crate::byte_counts::{ByteCounts, Order};
use crate::stack::EcnOption;
use base::{Ecn, Span, Time};

/// Where a counter stands in `counts`.
const E0B: usize = 0;
pub(super) const CEB: usize = 1;
const E1B: usize = 2;
/// What they begin with, so that a counter that somebody zeroed can be told (§3.2.3.2.4).
const INITIAL: [u32; 3] = [1, 0, 1];

/// The counter of a field. What is not ECN-capable is not counted.
fn counter_of(field: Ecn) -> Option<usize> {
    match field {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(E0B),
        Ecn::Ect1 => Some(E1B),
        Ecn::Ce => Some(CEB),
    }
}

/// The counters in the order of an option, and back.
pub(super) fn in_order(order: Order, [first, second, third]: [u32; 3]) -> [u32; 3] {
    match order {
        Order::Ect0First => [first, second, third],
        Order::Ect1First => [third, second, first],
    }
}

/// A receiver's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Counted {
    counts: [u32; 3],
    when: When,
    /// Marked bytes in all.
    pub marked: u64,
}

base::left_whole!(Counted);

/// By whose rules an option is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
enum When {
    Rfc(Rfc),
    Linux(Linux),
}

/// What decides when acknowledgements carry an option, by the RFC's rules.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Rfc {
    /// The counter that the last data added to.
    last: Option<usize>,
    /// The ECT field that came last.
    order: Order,
    /// The next acknowledgement has to carry an option.
    is_wanted: bool,
    /// Options may be lost on the way: none is sent any more.
    is_blocked: bool,
    /// When a full option was sent last.
    sent_at: Time,
}

impl Counted {
    /// Nothing has come.
    pub fn new(rules: EcnOption) -> Self {
        let rfc = Rfc { last: None, order: Order::Ect0First, is_wanted: true, is_blocked: false, sent_at: Time::ZERO };
        let when = match rules {
            EcnOption::Off | EcnOption::Rfc => When::Rfc(rfc),
            EcnOption::LinuxMinimum | EcnOption::Linux | EcnOption::LinuxPersist => When::Linux(Linux::new(rules)),
        };
        Self { counts: INITIAL, when, marked: 0 }
    }

    /// What only Linux's rules ask for.
    pub fn linux(&mut self) -> Option<&mut Linux> {
        match &mut self.when {
            When::Rfc(_) => None,
            When::Linux(linux) => Some(linux),
        }
    }

    /// Whether data may carry an option.
    pub fn rides_on_data(&self) -> bool {
        matches!(self.when, When::Linux(_))
    }

    /// The option of a SYN/ACK, if it has one. What is sent again has none (§3.2.3.2.2); by the RFC's rules nothing
    /// else has either then.
    pub fn of_synack(&mut self, is_repeated: bool, now: Time) -> Option<ByteCounts> {
        match &mut self.when {
            When::Rfc(rfc) => {
                rfc.is_blocked |= is_repeated;
                self.option(0, false, now, None).map(|(option, _)| option)
            }
            When::Linux(_) if is_repeated => None,
            When::Linux(_) => Some(ByteCounts::new(Order::Ect1First, INITIAL, ByteCounts::MOST)),
        }
    }

    /// Counts data. Returns whether it is to be acknowledged at once, since it added to another counter than the data
    /// before.
    pub fn count(&mut self, field: Ecn, bytes: u32) -> bool {
        let Some(counter) = counter_of(field).filter(|_| bytes > 0) else { return false };
        let before = self.counts[counter];
        self.counts[counter] = before.wrapping_add(bytes);
        if counter == CEB {
            self.marked += u64::from(bytes);
        }
        match &mut self.when {
            When::Rfc(rfc) => rfc.count(field, counter),
            When::Linux(linux) => {
                linux.count(field, [before, self.counts[counter]].map(|count| count.wrapping_sub(INITIAL[counter])));
                // A change of field is one, whatever it brings.
                false
            }
        }
    }

    /// The option of a packet beside so many `reports`, if it carries one, and how many of these are left. The first
    /// may tell of what came twice.
    pub fn option(
        &mut self,
        reports: usize,
        tells_twice: bool,
        now: Time,
        rtt: Option<Span>,
    ) -> Option<(ByteCounts, usize)> {
        let (order, (len, left)) = match &mut self.when {
            When::Rfc(rfc) => (rfc.order, (rfc.len(reports, now, rtt)?, reports)),
            When::Linux(linux) => {
                linux.note_rtt(rtt);
                (Order::Ect1First, linux.len(reports, tells_twice, now)?)
            }
        };
        Some((ByteCounts::new(order, in_order(order, self.counts), len), left))
    }
}

impl Rfc {
    /// Notes data that added to a counter. Returns whether the one before added to another.
    fn count(&mut self, field: Ecn, counter: usize) -> bool {
        match field {
            Ecn::Ect0 => self.order = Order::Ect0First,
            Ecn::Ect1 => self.order = Order::Ect1First,
            _ => {}
        }
        let changes = self.last.is_some_and(|last| last != counter);
        self.last = Some(counter);
        self.is_wanted |= changes || counter == CEB;
        changes && !self.is_blocked
    }

    /// Whether an acknowledgement at `now` has to carry an option, where a round trip takes `rtt`.
    fn is_due(&self, now: Time, rtt: Option<Span>) -> bool {
        self.is_wanted || rtt.is_none_or(|rtt| now.since(self.sent_at) >= rtt / 4)
    }

    /// How many counters an acknowledgement beside so many `reports` carries, if any.
    fn len(&mut self, reports: usize, now: Time, rtt: Option<Span>) -> Option<usize> {
        let len = match reports {
            0 | 1 => ByteCounts::MOST,
            2 => 2,
            _ => return None,
        };
        if self.is_blocked || !self.is_due(now, rtt) {
            return None;
        }
        self.is_wanted = false;
        if len == ByteCounts::MOST {
            self.sent_at = now;
        }
        Some(len)
    }
}

/// What a sender has read of its peer's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Learnt {
    counts: [u32; 3],
    /// Nothing was read yet.
    is_first: bool,
    /// Somebody zeroed the counters: they are not read any more.
    is_spoilt: bool,
    /// Bytes that were taken to be marked by acknowledgements without an option, since the last one.
    supposed: u64,
    /// Bytes that the acknowledgement in hand tells were marked.
    pub newly: u64,
    /// Marked bytes in all that it has heard of, by options and otherwise.
    pub marked: u64,
    /// What is foreseen, by Linux's rules.
    foreseen: Option<Foreseen>,
}

base::left_whole!(Learnt);

impl Learnt {
    /// Nothing was read.
    pub fn new(rules: EcnOption) -> Self {
        let foreseen = rules.is_linux().then(Foreseen::default);
        Self { counts: INITIAL, is_first: true, is_spoilt: false, supposed: 0, newly: 0, marked: 0, foreseen }
    }

    /// Reads an option. Returns how many bytes more were marked since the last one, if it tells that.
    fn read(&mut self, option: &ByteCounts) -> Option<u64> {
        if self.is_spoilt {
            return None;
        }
        let mut counts = in_order(option.order, self.counts);
        let mut known = [false; 3];
        for (place, &counter) in option.counters().iter().enumerate() {
            // Appendix A.1. What seems to have fallen was overtaken, and says nothing.
            let more = counter.wrapping_sub(counts[place]) % ByteCounts::MODULUS;
            if more < ByteCounts::MODULUS / 2 {
                counts[place] = counts[place].wrapping_add(more);
                known[place] = true;
            }
        }
        let before = self.counts[CEB];
        if self.is_zeroed(option) {
            return None;
        }
        self.counts = in_order(option.order, counts);
        // The counter of marks is the second in both orders.
        known[CEB].then(|| u64::from(self.counts[CEB].wrapping_sub(before)))
    }

    /// Whether somebody zeroed the counters of this option or, where it is not the first, those of the first.
    fn is_zeroed(&mut self, option: &ByteCounts) -> bool {
        if std::mem::take(&mut self.is_first) {
            // §3.2.3.2.4: counters of ECT never begin with zero.
            self.is_spoilt = option.counters().iter().step_by(2).any(|&counter| counter == 0);
        }
        self.is_spoilt
    }

    /// Takes an acknowledgement of what arrived, of which the field lets suppose `[least, safest]` marked. Returns how
    /// many packets were marked.
    pub fn hear(
        &mut self,
        option: Option<&ByteCounts>,
        [least, safest]: [u32; 2],
        arrival: Arrival,
        usual: Usual,
    ) -> u32 {
        let Arrival { packets, mss, .. } = arrival;
        if self.foreseen.is_some() {
            let told = self.foresee(option, arrival.told_bytes);
            let marked =
                told.map_or_else(|| usual.choose([least, safest]), |bytes| arrival.marked(bytes, [least, safest]));
            // Linux's controllers count packets.
            self.newly = arrival.share(marked);
            self.marked += self.newly;
            return marked;
        }
        let Some(more) = option.and_then(|option| self.read(option)) else {
            self.newly = u64::from(safest) * u64::from(mss);
            self.supposed += self.newly;
            self.marked += self.newly;
            return safest;
        };
        // What was supposed too much before is not answered again.
        let supposed = std::mem::take(&mut self.supposed);
        self.newly = more.saturating_sub(supposed);
        self.marked = (self.marked + more).saturating_sub(supposed);
        packets_of(more, [least, safest], packets, mss)
    }

    /// Takes an acknowledgement of `bytes` bytes by Linux's rules. Returns how many bytes more were marked, if it tells
    /// that.
    pub fn foresee(&mut self, option: Option<&ByteCounts>, bytes: u64) -> Option<u64> {
        if self.is_spoilt || option.is_some_and(|option| self.is_zeroed(option)) {
            return None;
        }
        let foreseen = self.foreseen.as_mut()?;
        match option {
            Some(option) => foreseen.read(&mut self.counts, option),
            None => foreseen.suppose(&mut self.counts, bytes),
        }
    }
}

/// How many packets brought `bytes` that were marked: the fewest that can have done so, of those that the field allows.
fn packets_of(bytes: u64, [least, safest]: [u32; 2], packets: u32, mss: u32) -> u32 {
    if packets <= super::accurate::MOST {
        return least;
    }
    let fewest = bytes.div_ceil(u64::from(mss)).min(u64::from(safest)) as u32;
    least + fewest.saturating_sub(least).next_multiple_of(super::accurate::MOST + 1)
}
