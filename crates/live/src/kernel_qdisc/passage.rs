//! A [`Passage`] is the bottleneck of one direction in the kernel, as the network sees it. It does what
//! [`Egress`](aqm::Egress) does for our disciplines, from what goes in, what comes out and what the kernel counts.

use super::outstanding::Outstanding;
use super::signature::signature;
use super::statistics::{ByCause, Statistics};
use crate::frame::Frame;
use crate::pace::Pace;
use crate::wire;
use aqm::{Backlog, Cause, Counts, Delivery, Packet, Standing, Tap};
use base::{Ecn, Rate, Span, Time};

/// Disciplines of Linux that hold all packets in one line. Among them sfb keeps its packets in one fifo, and choke
/// drops packets from the middle of one.
const ONE_LINE: [&str; 9] = ["pfifo", "bfifo", "pfifo_head_drop", "red", "ared", "choke", "codel", "pie", "sfb"];
/// After so long a packet counts as lost although nothing has overtaken it, most likely as the last of its flow. No
/// more packets count so than the kernel says are lost.
const LOST_AFTER: Span = Span::from_secs(30);

/// How many of the last answers tell how many packets are missing. Several do, because a packet on its way at the
/// instant of an answer seems to be missing.
const ASKED: usize = 4;

/// How long a link must have been busy before its rate is judged. While it was idle, the shaper's bucket has filled
/// with up to a millisecond's worth, which goes at once.
const FILLED: Span = Span::from_ms(2);

/// A discipline of the kernel's, and the packets that are inside.
pub struct Passage {
    inside: Outstanding,
    rate: Rate,
    overhead: u32,
    counts: Counts,
    told: Statistics,
    /// How many packets were missing when it was last asked, the newest in any place.
    missing: [i64; ASKED],
    asked: usize,
    /// What went in and what came out since the kernel last told its backlog.
    since: [Backlog; 2],
    /// What was found lost since then and was still waiting by the kernel's last counts.
    lost: Backlog,
    standing: Standing,
    last: Sent,
    pace: Pace,
    /// Packets that came out and never went in.
    unknown: u64,
    /// Packets that went past the kernel.
    past: u64,
}

impl Passage {
    /// An idle link of `rate`, on which each packet takes `overhead` bytes more, behind Linux's discipline called
    /// `qdisc`.
    pub fn new(qdisc: &str, rate: Rate, overhead: u32) -> Self {
        Self {
            inside: Outstanding::new(ONE_LINE.contains(&qdisc)),
            rate,
            overhead,
            counts: Counts::default(),
            told: Statistics::default(),
            missing: [i64::MAX; ASKED],
            asked: 0,
            since: [Backlog::default(); 2],
            lost: Backlog::default(),
            standing: Standing::default(),
            last: Sent::default(),
            pace: Pace::default(),
            unknown: 0,
            past: 0,
        }
    }

    /// Notes that `frame`, with these `bytes`, was handed to the kernel at `now`.
    pub fn offer(&mut self, frame: Frame, bytes: &[u8], now: Time) {
        self.counts.offered += 1;
        add(&mut self.since[0], &frame);
        self.inside.put(frame, signature(bytes), now);
        self.stand(now);
    }

    /// Counts a packet that goes from one side to the other without the kernel.
    pub fn go_past(&mut self) {
        self.counts.offered += 1;
        self.counts.delivered += 1;
        self.past += 1;
    }

    /// Takes `packet`, which the kernel has let go of at `now`: it waited until then, and is sent from then on. Returns
    /// `None` if the kernel never had it.
    pub fn release(&mut self, packet: &[u8], now: Time, tap: &mut dyn Tap<Frame>) -> Option<Delivery<Frame>> {
        let Self { inside, counts, told, lost, .. } = self;
        let known: u64 = told.dropped.iter().sum();
        let header = wire::parse(packet).ok();
        let overtaken = |frame: Frame| {
            if counts.dropped_total() >= known {
                add(lost, &frame);
            }
            lose(counts, told, frame, now, tap);
        };
        let found = header.and_then(|header| inside.take(&header, signature(packet), overtaken).zip(Some(header)));
        let Some(((mut frame, offered), header)) = found else {
            self.unknown += 1;
            self.stand(now);
            return None;
        };
        tap.accepted(&frame, now);
        if header.ecn == Ecn::Ce && frame.ecn != Ecn::Ce {
            frame.mark();
            let cause = cause(&self.told.marked, &self.counts.marked);
            self.counts.marked[cause.index()] += 1;
            tap.marked(&frame, cause, now);
        }
        self.counts.delivered += 1;
        add(&mut self.since[1], &frame);
        self.stand(now);
        let size = frame.size() + self.overhead;
        let takes = self.rate.time_for(u64::from(size));
        let last = self.last;
        // It was waiting when the packet before had been sent, so that it had to follow at once.
        let follows = offered <= last.begun + last.takes;
        let busy = if follows { last.busy + last.takes } else { Span::ZERO };
        if busy > FILLED {
            self.pace.followed(last.size, last.takes, now.since(last.begun));
        }
        // A shaper may let several packets go at once after a pause; they stay in order.
        let at = last.at.max(now + takes);
        self.last = Sent { begun: now, takes, size, at, busy };
        Some(Delivery { packet: frame, at, waited: now.since(offered) })
    }

    /// Whether the kernel kept the rate.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Takes the counts that the kernel gives at `now`.
    pub fn tell(&mut self, told: Statistics, now: Time, tap: &mut dyn Tap<Frame>) {
        self.told = told;
        self.since = [Backlog::default(); 2];
        self.lost = Backlog::default();
        self.missing[self.asked % ASKED] = self.missing_now();
        self.asked += 1;
        let lost: u64 = told.dropped.iter().sum();
        // Either everything inside is lost, or the oldest packets are. In one line these wait until something overtakes
        // them.
        let before = match self.unseen(lost) >= self.inside.len() as u64 {
            true => Time::NEVER,
            false if self.inside.is_one_line() => Time::ZERO,
            false => now - LOST_AFTER,
        };
        while self.unseen(lost) > 0
            && let Some(frame) = self.inside.take_older(before)
        {
            lose(&mut self.counts, &self.told, frame, now, tap);
        }
        self.stand(now);
    }

    fn stand(&mut self, now: Time) {
        self.standing.set(self.backlog().packets, now);
    }

    /// Packets that waited, as far as is known, summed over the time until `now`: packets x ns.
    pub fn waiting_packet_ns(&self, now: Time) -> u128 {
        self.standing.packet_ns(now)
    }

    /// How many of the `lost` packets have not been identified.
    fn unseen(&self, lost: u64) -> u64 {
        lost.saturating_sub(self.counts.dropped_total())
    }

    /// What went through.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The law's state when it was last asked for.
    pub fn gauges(&self) -> aqm::Gauges {
        self.told.gauges
    }

    /// The backlog: that of the kernel's last answer, plus what went in since, less what came out or was found lost.
    pub fn backlog(&self) -> Backlog {
        let ([entered, left], lost) = (self.since, self.lost);
        Backlog {
            packets: (self.told.backlog.packets + entered.packets).saturating_sub(left.packets + lost.packets),
            bytes: (self.told.backlog.bytes + entered.bytes).saturating_sub(left.bytes + lost.bytes),
        }
    }

    /// How many packets are missing: they went in, did not come out, and the kernel says neither that they wait nor
    /// that they are lost. They were lost on the way to the discipline or from it. This is the least of the kernel's
    /// last answers, since a packet that comes out while the kernel is asked is missing in one answer, and a lost one
    /// in all.
    pub fn missing(&self) -> i64 {
        self.missing.iter().copied().min().filter(|_| self.asked > 0).unwrap_or(0)
    }

    fn missing_now(&self) -> i64 {
        let [entered, left] = self.since.map(|backlog| i64::from(backlog.packets));
        let inside = self.counts.offered as i64 - entered - (self.counts.delivered as i64 - left);
        inside - self.told.dropped.iter().sum::<u64>() as i64 - i64::from(self.told.backlog.packets)
    }

    /// Packets that came out and never went in: the kernel's own.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Packets that the kernel would not have forwarded, and so went without it.
    pub fn past(&self) -> u64 {
        self.past
    }

    /// Asserts that no packet was lost unaccounted or made up.
    pub fn assert_conserved(&self) {
        let (counts, inside) = (&self.counts, self.inside.len() as u64);
        assert!(
            counts.offered == counts.delivered + counts.dropped_total() + inside,
            "packets are conserved: {counts:?}, {inside} inside"
        );
    }
}

/// The packet that was sent last.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// When the kernel let go of it.
    begun: Time,
    /// What sending it takes.
    takes: Span,
    /// Its size on the wire.
    size: u32,
    /// When its last bit is sent.
    at: Time,
    /// How long the link has been busy without a gap.
    busy: Span,
}

fn add(backlog: &mut Backlog, frame: &Frame) {
    backlog.packets += 1;
    backlog.bytes += u64::from(frame.size());
}

fn lose(counts: &mut Counts, told: &Statistics, frame: Frame, now: Time, tap: &mut dyn Tap<Frame>) {
    let cause = cause(&told.dropped, &counts.dropped);
    counts.dropped[cause.index()] += 1;
    tap.dropped(frame, cause, now);
}

/// The cause of a loss or mark, chosen so that in the end each cause has as many as the kernel has told. It is the
/// cause with the most that were told and not `seen` yet. If there is none, it is the one told most often, or the law
/// if nothing was told.
fn cause(told: &ByCause, seen: &ByCause) -> Cause {
    let missing = |cause: Cause| told[cause.index()].saturating_sub(seen[cause.index()]);
    let mut found = Cause::EARLY;
    for cause in Cause::ALL {
        if (missing(cause), told[cause.index()]) > (missing(found), told[found.index()]) {
            found = cause;
        }
    }
    found
}
