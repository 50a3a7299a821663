//! The receiver of media: what it reports of packets, and when.
//!
//! Sources: RFC 8888 §3.1 (what a report has), draft-ietf-ccwg-rfc8298bis-screamv2 §5 (when there is one) and §6 (what
//! it spans). A report goes out when more than sixteen packets have come since the last, with the last packet of a
//! frame, and 40 ms after the first packet that was not reported. It spans the last 32 packets that came, so that one
//! that is lost tears no hole.

use base::{Ecn, Span, Time};

/// With more packets than these a report goes out (N in §5 of the draft).
const MOST_UNREPORTED: u32 = 16;
/// A packet is reported at the latest after this.
const LATEST: Span = Span::from_ms(40);
/// A report goes back so many packets that came, and at most so many sequence numbers.
const SPAN_RECEIVED: usize = 32;
const SPAN: usize = 64;
/// Arrival times are told in units of 1/1024 s before the report, in 13 bits of which the last two are reserved.
const OFFSETS_PER_S: u64 = 1024;
const LARGEST_OFFSET: u64 = 8189;

/// IP, UDP and RTCP headers, the two sources' identifiers, the first sequence number, the count and the time stamp.
const REPORT_HEADER_BYTES: u32 = 20 + 8 + 4 + 4 + 4 + 4 + 4;

/// A report: what came of so many packets in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// When it was made.
    pub at: Time,
    /// The sequence number of the first packet.
    pub begin: u64,
    count: u8,
    /// Of each packet, the ECN field and how long before the report it came; none if it did not come.
    entries: [Option<(Ecn, u16)>; SPAN],
}

impl Report {
    /// The packets that came: sequence number, ECN field, and when it came, as far as the report tells.
    pub fn received(&self) -> impl Iterator<Item = (u64, Ecn, Time)> + '_ {
        let entries = self.entries[..usize::from(self.count)].iter().zip(self.begin..);
        entries.filter_map(|(entry, sequence)| {
            let (ecn, offset) = (*entry)?;
            let before = u64::from(offset) * 1_000_000_000 / OFFSETS_PER_S;
            Some((sequence, ecn, Time::from_ns(self.at.ns().saturating_sub(before))))
        })
    }

    /// Its size, bytes (IP): two for each packet, in whole words (RFC 8888 §3.1).
    pub fn size(&self) -> u32 {
        REPORT_HEADER_BYTES + u32::from(self.count).div_ceil(2) * 4
    }
}

/// The receiver of media.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// What came of the last sequence numbers, each at its remainder.
    recent: [Option<(u64, Ecn, Time)>; SPAN],
    /// The highest sequence number that came.
    highest: Option<u64>,
    /// How many came since the last report, and when the first of them did.
    unreported: u32,
    since: Option<Time>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self { recent: [None; SPAN], highest: None, unreported: 0, since: None }
    }
}

impl Receiver {
    /// A packet came, with this ECN field; `is_last` of its frame. Returns the report that is due.
    pub fn on_packet(&mut self, sequence: u64, is_last: bool, ecn: Ecn, now: Time) -> Option<Report> {
        let is_told = self.highest.is_some_and(|highest| sequence + SPAN as u64 <= highest);
        if !is_told {
            self.recent[sequence as usize % SPAN] = Some((sequence, ecn, now));
        }
        self.highest = self.highest.max(Some(sequence));
        self.unreported += 1;
        self.since = self.since.or(Some(now));
        (is_last || self.unreported > MOST_UNREPORTED).then(|| self.report(now)).flatten()
    }

    /// It is `now`. Returns the report that is due.
    pub fn on_wake(&mut self, now: Time) -> Option<Report> {
        (self.next_wake() <= now).then(|| self.report(now)).flatten()
    }

    /// When it next wants a call.
    pub fn next_wake(&self) -> Time {
        self.since.map_or(Time::NEVER, |since| since + LATEST)
    }

    fn report(&mut self, now: Time) -> Option<Report> {
        let highest = self.highest?;
        (self.unreported, self.since) = (0, None);
        let first = highest.saturating_sub(SPAN as u64 - 1);
        let came = |sequence: u64| self.recent[sequence as usize % SPAN].filter(|(own, ..)| *own == sequence);
        let begin = (first..=highest).rev().filter(|&sequence| came(sequence).is_some()).take(SPAN_RECEIVED).last()?;
        let mut entries = [None; SPAN];
        for (entry, sequence) in entries.iter_mut().zip(begin..=highest) {
            *entry = came(sequence).map(|(_, ecn, at)| {
                let offset = now.since(at).ns() * OFFSETS_PER_S / 1_000_000_000;
                (ecn, offset.min(LARGEST_OFFSET) as u16)
            });
        }
        Some(Report { at: now, begin, count: (highest - begin + 1) as u8, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn the_last_packet_of_a_frame_is_reported_at_once_and_others_by_number_or_time() {
        let mut receiver = Receiver::default();
        assert_eq!(receiver.next_wake(), Time::NEVER);
        assert_eq!(receiver.on_packet(0, false, Ecn::Ect1, at(1000)), None);
        assert_eq!(receiver.on_packet(1, false, Ecn::Ce, at(3000)), None);
        let report = receiver.on_packet(2, true, Ecn::Ect1, at(5000)).expect("a frame is complete");
        let told: Vec<_> = report.received().map(|(sequence, ecn, _)| (sequence, ecn)).collect();
        assert_eq!(told, [(0, Ecn::Ect1), (1, Ecn::Ce), (2, Ecn::Ect1)]);
        // Offsets are whole 1/1024 s: 4 ms are four of these, 2 ms two.
        let came: Vec<_> = report.received().map(|(.., at)| at.ns()).collect();
        assert_eq!(came, [5_000_000 - 3_906_250, 5_000_000 - 1_953_125, 5_000_000]);
        assert_eq!(report.size(), 48 + 8);

        assert_eq!(receiver.on_packet(3, false, Ecn::Ect1, at(6000)), None);
        assert_eq!(receiver.next_wake(), at(46_000));
        assert_eq!(receiver.on_wake(at(45_999)), None);
        assert!(receiver.on_wake(at(46_000)).is_some() && receiver.next_wake() == Time::NEVER);
        let mut is_told = |sequence| receiver.on_packet(sequence, false, Ecn::Ect1, at(50_000)).is_some();
        assert!((4..20).all(|sequence| !is_told(sequence)) && is_told(20), "more than sixteen packets");
    }

    #[test]
    fn a_report_spans_the_last_32_packets_that_came_within_64_numbers() {
        let mut receiver = Receiver::default();
        let mut last = None;
        for sequence in (0..100).filter(|sequence| sequence % 2 == 0) {
            last = receiver.on_packet(sequence, true, Ecn::NotEct, at(sequence));
        }
        let report = last.expect("each is the last of a frame");
        assert_eq!((report.begin, report.received().count()), (36, 32));
        // A hole of 80: what lies before it is out of reach.
        let report = receiver.on_packet(179, true, Ecn::NotEct, at(200)).expect("a frame is complete");
        assert_eq!((report.begin, report.received().count(), report.size()), (179, 1, 52));
    }

    #[test]
    fn packets_out_of_order_are_told_where_they_belong() {
        let mut receiver = Receiver::default();
        receiver.on_packet(5, false, Ecn::Ect0, at(1));
        let report = receiver.on_packet(4, true, Ecn::Ce, at(2)).expect("a frame is complete");
        let told: Vec<_> = report.received().map(|(sequence, ecn, _)| (sequence, ecn)).collect();
        assert_eq!(told, [(4, Ecn::Ce), (5, Ecn::Ect0)]);
    }
}
