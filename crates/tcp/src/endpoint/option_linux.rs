//! When Linux sends an AccECN option, and how much of one (RFC 9768 §3.2.3 leaves most of that open).
//!
//! Any packet but a SYN may have one. With `tcp_ecn_option = 2`, its default, all have that leave room for it, so that
//! data gives up 12 bytes of each segment. With 1 those have that follow a change of the ECN field or a mark, two each,
//! and those that go out when a third of a round trip has passed without. An option always has the order of AccECN1,
//! and always as many counters as fit, if these are enough: up to the last one that data added to since the last
//! option. Beside two reports there is room for two counters, which is not enough where data came with ECT(0), the
//! third. A third report is given up for an option where two counters are enough. Where nothing came, an option without
//! counters takes the place of padding.
//!
//! Whoever has seen no option sends none. A SYN/ACK that is sent again has none, and the client behind it has seen none
//! then. Who hears twice in a row that its acknowledgement with an option did not arrive sends none any more, but with
//! `tcp_ecn_option = 3`.
//!
//! Source: Linux 7.3, tcp_output.c (tcp_established_options, tcp_options_fit_accecn, tcp_options_write), tcp_ecn.h
//! (tcp_ecn_received_counters, tcp_accecn_option_beacon_check), tcp_input.c (tcp_rcv_spurious_retrans).
//!
//! | Linux | here |
//! |---|---|
//! | `accecn_opt_demand` | `demand` |
//! | `accecn_minlen` | `needed` |
//! | `accecn_opt_tstamp` | `sent_at` |
//! | `prev_ecnfield` | `field` |
//! | `saw_accecn_opt` | `has_seen` |
//! | `accecn_opt_sent_w_dsack`, `duplicate_sack[0]` | `told_twice` |
//! | `TCP_ACCECN_OPT_FAIL_SEND` | `is_blocked` |
//!
//! # Deviations
//! - A segment that is sent again is not parted to make room for an option.
//! - Without timestamps there is as much room as with them.

use crate::byte_counts::ByteCounts;
use crate::stack::EcnOption;
use base::{Ecn, Span, Time};

/// Options that follow a change of the ECN field, or a mark.
const DEMANDED: u8 = 2;
/// tcp_ecn_option_beacon: options a round trip.
const BEACONS: u64 = 3;
/// Most of a counter that is not told of: 4 MB.
const UNTOLD: u32 = !0 << 22;
/// Bytes of options beside timestamps, and what data leaves for a whole option.
const ROOM: usize = 28;
const DATA_ROOM: u32 = 12;

/// What Linux knows of options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Linux {
    rules: EcnOption,
    /// So many of the next packets have to carry an option.
    demand: u8,
    /// So many counters have changed, up to the last in their order, since the last option.
    needed: usize,
    sent_at: Time,
    /// A round trip, as far as it is known.
    rtt: Span,
    /// The ECN field that came last.
    field: Ecn,
    /// The peer sends options.
    has_seen: bool,
    is_blocked: bool,
    /// What came twice last, and whether an acknowledgement with an option was the last to say so.
    told_twice: (u64, bool),
}

impl Linux {
    /// Nothing has come.
    pub fn new(rules: EcnOption) -> Self {
        Self {
            rules,
            demand: 0,
            needed: 0,
            sent_at: Time::ZERO,
            rtt: Span::ZERO,
            field: Ecn::NotEct,
            has_seen: false,
            is_blocked: false,
            told_twice: (0, false),
        }
    }

    /// Notes with which field a SYN came (tcp_ecn_openreq_child).
    pub fn note_syn(&mut self, field: Ecn) {
        (self.field, self.demand) = (field, 1);
    }

    /// Notes that the peer sent an option, for the first time with a SYN/ACK if it is one.
    pub fn note_peers(&mut self, is_synack: bool) {
        if is_synack && !self.has_seen {
            self.demand = DEMANDED;
        }
        self.has_seen = true;
    }

    /// Notes with which field a packet came.
    pub fn note_field(&mut self, field: Ecn) {
        if field != self.field || field == Ecn::Ce {
            (self.field, self.demand) = (field, DEMANDED);
        }
    }

    /// Notes that data brought a counter from one value to another.
    pub fn count(&mut self, field: Ecn, [before, after]: [u32; 2]) {
        let place = match field {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ce => 2,
            Ecn::Ect0 => 3,
        };
        self.needed = self.needed.max(place);
        if (before ^ after) & UNTOLD != 0 {
            self.demand = self.demand.max(1);
        }
    }

    /// Notes that data at `seq` came twice, and is about to be told of.
    pub fn note_twice(&mut self, seq: u64) {
        self.is_blocked |= self.told_twice == (seq, true);
        self.told_twice.0 = seq;
    }

    /// Notes how long a round trip takes.
    pub fn note_rtt(&mut self, rtt: Option<Span>) {
        self.rtt = rtt.unwrap_or(self.rtt);
    }

    /// Whether a packet at `now` carries an option, if there is room.
    fn is_due(&self, now: Time) -> bool {
        if !self.has_seen || self.is_blocked && self.rules != EcnOption::LinuxPersist {
            return false;
        }
        let is_beacon = now.since(self.sent_at).ns() * BEACONS >= self.rtt.ns();
        self.rules != EcnOption::LinuxMinimum || self.demand > 0 || is_beacon
    }

    /// How many bytes options take of each segment that is sent at `now`.
    pub fn room(&self, now: Time) -> u32 {
        if self.is_due(now) { DATA_ROOM } else { 0 }
    }

    /// How many counters a packet carries beside so many `reports`, and how many reports are left, if it has an option.
    pub fn len(&mut self, reports: usize, tells_twice: bool, now: Time) -> Option<(usize, usize)> {
        let found = if self.is_due(now) { fit(reports, self.needed) } else { None };
        self.told_twice.1 = tells_twice && found.is_some();
        if found.is_some() {
            (self.needed, self.sent_at, self.demand) = (0, now, self.demand.saturating_sub(1));
        }
        found
    }
}

/// How many counters fit beside how many of the `reports`, at least the first `needed` (tcp_options_fit_accecn).
fn fit(reports: usize, needed: usize) -> Option<(usize, usize)> {
    let size = |counters: usize, reports: usize| {
        // The option may take the place of two bytes of padding before a report.
        let bytes = 2 + 3 * counters;
        let padding = if reports > 0 { 2 } else { 0 };
        if bytes % 4 > padding { bytes.next_multiple_of(4) } else { bytes / 4 * 4 }
    };
    let most = |reports: usize| {
        let room = ROOM - if reports > 0 { 4 + 8 * reports } else { 0 };
        (needed..=ByteCounts::MOST).rev().find(|&counters| size(counters, reports) <= room)
    };
    let less = |reports: usize| if reports > 2 && needed > 0 { most(2).map(|counters| (counters, 2)) } else { None };
    most(reports).map(|counters| (counters, reports)).or_else(|| less(reports))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 28 bytes of options beside timestamps: a report of n blocks takes 4 + 8n, counters 2 + 3n in words, less two
    /// bytes of padding that every report has.
    #[test]
    fn what_fits_beside_reports() {
        for needed in 0..=3 {
            assert_eq!(fit(0, needed), Some((3, 0)));
            assert_eq!(fit(1, needed), Some((3, 1)));
        }
        assert_eq!([0, 1, 2, 3].map(|needed| fit(2, needed)), [Some((2, 2)), Some((2, 2)), Some((2, 2)), None]);
        assert_eq!([0, 1, 2, 3].map(|needed| fit(3, needed)), [Some((0, 3)), Some((2, 2)), Some((2, 2)), None]);
    }
}
