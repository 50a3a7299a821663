//! This file plays a set of vectors with fewer or more connections than were seen, by thinning and duplicating.
//!
//! The `scale` of a set says how many connections are played for each one that was seen.
//!
//! - **Thinning**: each connection is kept or not by a draw of its own, independent of all others. Below 1, `scale` is
//!   the share that is kept. Arrivals that come in bursts come in thinner bursts.
//! - **Duplicating**: copies of the whole set are laid over it. Each copy begins at a random offset of its own and goes
//!   round: what this moves beyond the end of the set begins at its start. The last copy is thinned. Within a copy
//!   connections keep their distances, and so the correlation of arrivals over long times (block resampling,
//!   Hernandez-Campos 2006). Drawing instants independently (Poisson resampling) would destroy it.
//!
//! Both follow one rule: vector i, with its draw u in (0, 1), is in copy k = 0, 1, ... if u < scale - k. A larger scale
//! thus plays all that a smaller one does, at the same instants.
//!
//! The scale for a **load** is found by counting up (byte-driven resampling). Connections are taken in the order of
//! their draws, copy after copy, until the bytes that they offer within a window come to the load. To count connections
//! instead of bytes would let the few that carry half of the bytes decide the load. The last connection is in or out,
//! whichever comes nearer. If both miss by more than a hundredth, it is left out, and the connections after it fill the
//! gap in the same way. So a load far below the largest connections goes without these. But for a few, no more are left
//! out than are taken, since the rest is to resemble the set.
//!
//! What a connection offers, and when, is estimated on a network with nothing but propagation delay: a unit takes half
//! a round trip, and a whole one more for each further receive window that it fills. Slow start, losses and queues make
//! it later.

use super::{INITIATOR, Vector, Vectors};
use base::{Span, Stream, Time};

/// The start of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Start {
    /// When.
    pub at: Time,
    /// The vector that it plays.
    pub vector: u32,
    /// The copy of the set that it belongs to.
    pub copy: u32,
}

/// What a connection meets on its way, besides the link.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Round-trip propagation delay.
    pub rtt: Span,
    /// Receive windows of initiator and acceptor, bytes.
    pub windows: [u32; 2],
}

/// The connections that offer a load.
#[derive(Clone, PartialEq, Debug)]
pub struct Population {
    /// How many there are for each that was seen.
    pub scale: f64,
    /// The connections of that scale that are left out, as copy and vector, in order.
    pub without: Vec<(u32, u32)>,
    /// Bytes that they offer.
    pub offered: f64,
}

/// Why no population offers a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Unmet {
    /// Even [`MOST_COPIES`] copies offer only so many bytes.
    Beyond(f64),
    /// The nearest population offers so many bytes, which are off by more than [`TOLERANCE`].
    Between(f64),
}

/// The draws of thinning and duplicating: what a scale plays follows from them.
pub struct Resampling<'v> {
    vectors: &'v Vectors,
    /// Of each vector, in their order.
    draws: Vec<f64>,
    /// From the start of the set to where it begins again, in microseconds.
    period_us: u64,
    /// Gives the offset of a copy, as a fraction of the period; of the first it is 0.
    offset: Box<dyn Fn(u32) -> f64 + 'v>,
}

/// Most copies there are.
pub const MOST_COPIES: u32 = 1000;

/// A load is met when the population is off by this share of it at most.
const AIM: f64 = 0.01;
/// A population that is off by more than this share of its load is refused ([`Unmet::Between`]).
pub const TOLERANCE: f64 = 0.05;

/// Data goes in segments of 1,460 bytes with 40 of headers, as is usual, and every two have an acknowledgement.
const SEGMENT: u64 = 1460;
const HEADERS: u64 = 40;

impl<'v> Resampling<'v> {
    /// The draws for `vectors`: `keep` gives the vectors' in their order, `offset` each copy's own stream.
    pub fn new(vectors: &'v Vectors, mut keep: Stream, offset: impl Fn(u32) -> Stream + 'v) -> Self {
        let draws = (0..vectors.len()).map(|_| keep.open_unit()).collect();
        // The set lasts until a connection more would have come.
        let last = vectors.heads.last().map_or(0, |head| head.start_us);
        let gap = last / (vectors.len() as u64).saturating_sub(1).max(1);
        let period_us = (last + gap).max(1);
        let offset = Box::new(move |copy| if copy == 0 { 0.0 } else { offset(copy).unit() });
        Self { vectors, draws, period_us, offset }
    }

    /// The connections that begin before `end` at `scale`, in their order.
    pub fn starts(&self, scale: f64, end: Time) -> Vec<Start> {
        let mut starts = Vec::new();
        for copy in 0..scale.ceil() as u32 {
            let offset = self.offset(copy);
            let threshold = scale - f64::from(copy);
            for (vector, _) in (0..).zip(&self.draws).filter(|&(_, &draw)| draw < threshold) {
                let at = self.start(vector, offset);
                if at < end {
                    starts.push(Start { at, vector, copy });
                }
            }
        }
        starts.sort_unstable();
        starts
    }

    /// The population that offers `wanted` bytes in IP packets within `window`: of what the initiators send, or the
    /// acceptors, as `counts` says, where the connection of a copy and a vector meets `path`.
    ///
    /// # Errors
    /// Where none does.
    pub fn population(
        &self,
        wanted: f64,
        window: [Time; 2],
        counts: [bool; 2],
        path: impl Fn(u32, u32) -> Path,
    ) -> Result<Population, Unmet> {
        let offers = |copy, vector, start, window| {
            let bytes = self.vectors.get(vector).offers(start, window, path(copy, vector));
            bytes.into_iter().zip(counts).filter(|(_, counts)| *counts).map(|(n, _)| n).sum::<u64>() as f64
        };
        let mut order: Vec<u32> = (0..self.draws.len() as u32).collect();
        // In the mean over offsets a copy offers no more than this.
        let all: f64 = order.iter().map(|&vector| offers(0, vector, Time::ZERO, [Time::ZERO, Time::NEVER])).sum();
        let share = (window[1].since(window[0]).ns() as f64 / (self.period_us as f64 * 1e3)).min(1.0);
        order.sort_unstable_by(|&a, &b| self.draws[a as usize].total_cmp(&self.draws[b as usize]));
        let mut walk = Walk { wanted, offered: 0.0, kept: 0, without: Vec::new(), best: None };
        for copy in 0..MOST_COPIES {
            let offset = self.offset(copy);
            let mut draw_before = 0.0;
            for (place, &vector) in order.iter().enumerate() {
                let draw = self.draws[vector as usize];
                let start = self.start(vector, offset);
                let more = if start < window[1] { offers(copy, vector, start, window) } else { 0.0 };
                // With this connection or without it: half-way to its neighbour's draw.
                let after = order.get(place + 1).map_or(1.0, |&next| self.draws[next as usize]);
                let scales = [draw_before, after].map(|neighbour| f64::from(copy) + 0.5 * (draw + neighbour));
                if walk.meets((copy, vector), more, scales) || walk.is_hopeless() {
                    return walk.end();
                }
                draw_before = draw;
            }
            // The copies differ by what their offsets bring into the window, but not by half of it for ever; and what
            // is left of them brings no more than twice its mean.
            let most = walk.offered / f64::from(copy + 1) * f64::from(MOST_COPIES);
            let ahead = 2.0 * all * share * f64::from(MOST_COPIES - 1 - copy);
            if walk.best.is_none() && (most < 0.5 * wanted || walk.offered + ahead < wanted) {
                return Err(Unmet::Beyond(most));
            }
        }
        if walk.best.is_none() { Err(Unmet::Beyond(walk.offered)) } else { walk.end() }
    }

    /// The offset of a copy, in microseconds.
    fn offset(&self, copy: u32) -> u64 {
        ((self.offset)(copy) * self.period_us as f64) as u64
    }

    /// When a copy with this offset plays `vector`.
    fn start(&self, vector: u32, offset_us: u64) -> Time {
        let at = self.vectors.heads[vector as usize].start_us + offset_us;
        Time::ZERO + Span::from_us(if at >= self.period_us { at - self.period_us } else { at })
    }
}

/// Connections taken one after the other until they offer what is wanted.
struct Walk {
    wanted: f64,
    offered: f64,
    /// How many offer something and were taken.
    kept: usize,
    /// Left out so far.
    without: Vec<(u32, u32)>,
    best: Option<Candidate>,
}

/// A population as it was at some point of a walk.
struct Candidate {
    scale: f64,
    /// How many were left out by then.
    without: usize,
    offered: f64,
}

impl Walk {
    /// Whether the load is met once this connection, which offers `more`, was looked at: without it at the first of the
    /// scales, with it at the second.
    fn meets(&mut self, which: (u32, u32), more: f64, scales: [f64; 2]) -> bool {
        if self.offered + more < self.wanted {
            self.offered += more;
            self.kept += usize::from(more > 0.0);
            return false;
        }
        for (scale, offered) in scales.into_iter().zip([self.offered, self.offered + more]) {
            let error = (offered - self.wanted).abs();
            if self.best.as_ref().is_none_or(|best| error < (best.offered - self.wanted).abs()) {
                self.best = Some(Candidate { scale, without: self.without.len(), offered });
            }
        }
        self.without.push(which);
        self.best.as_ref().is_some_and(|best| (best.offered - self.wanted).abs() <= AIM * self.wanted)
    }

    /// Whether what was left out outweighs the rest: what might still come of it would not resemble the set.
    fn is_hopeless(&self) -> bool {
        const SOME: usize = 20;
        self.without.len() > self.kept + SOME
    }

    /// The nearest that was found.
    fn end(mut self) -> Result<Population, Unmet> {
        let Candidate { scale, without, offered } = self.best.expect("something was left out");
        if (offered - self.wanted).abs() > TOLERANCE * self.wanted {
            return Err(Unmet::Between(offered));
        }
        self.without.truncate(without);
        self.without.sort_unstable();
        Ok(Population { scale, without: self.without, offered })
    }
}

impl Vector<'_> {
    /// Bytes in IP packets that initiator and acceptor send within `window` if the connection begins at `start`, on a
    /// network without anything but delay, with full receive windows from the first.
    fn offers(&self, start: Time, window: [Time; 2], path: Path) -> [u64; 2] {
        let mut bytes = [0.0; 2];
        let Path { rtt, windows } = path;
        let half = rtt / 2;
        let mut send = |end: usize, at: Time, size: u64| {
            let takes = rtt * size.div_ceil(windows[1 - end].max(1).into()).saturating_sub(1);
            let segments = size.div_ceil(SEGMENT);
            let inside = share_inside([at, at + takes], window);
            bytes[end] += inside * (size + segments * HEADERS) as f64;
            bytes[1 - end] += inside * (segments.div_ceil(2) * HEADERS) as f64;
            at + takes
        };
        // When each end may begin: its side is open, or it wrote, or all of the other's unit arrived.
        let mut ready = [start + rtt, start + rtt + half];
        for unit in self.units() {
            let end = unit.end();
            let at = ready[end] + unit.wait();
            let sent = send(end, at, unit.bytes());
            ready[end] = at;
            if !self.is_concurrent() {
                ready[1 - end] = ready[1 - end].max(sent + half);
            }
        }
        if window[0] <= start && start < window[1] {
            // SYN, the ACK that completes the handshake, FIN; SYN/ACK and FIN.
            bytes[INITIATOR] += (3 * HEADERS) as f64;
            bytes[1 - INITIATOR] += (2 * HEADERS) as f64;
        }
        bytes.map(|bytes| bytes as u64)
    }
}

/// The share of a time that lies within `window`; of an instant all or nothing.
fn share_inside(time: [Time; 2], window: [Time; 2]) -> f64 {
    let from = time[0].max(window[0]);
    let to = time[1].min(window[1]);
    if time[0] == time[1] {
        return f64::from(u8::from(window[0] <= time[0] && time[0] < window[1]));
    }
    if from < to { to.since(from).ns() as f64 / time[1].since(time[0]).ns() as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tmix::reading;

    /// `count` connections, a millisecond apart, that ask for 100 bytes and get `bytes`.
    fn set(count: u64, bytes: impl Fn(u64) -> u64) -> Vectors {
        let vector = |i: u64| {
            format!("SEQ {} 1 0 {i}\nw 9000 9000\nr 20000\nl 0 0\n> 100\nt 0\n< {}\nt 0\n", i * 1000, bytes(i))
        };
        reading::read(&(0..count).map(vector).collect::<String>()).expect("sound")
    }

    /// That of every connection of a set.
    fn path(_: u32, _: u32) -> Path {
        Path { rtt: Span::from_ms(20), windows: [9_000; 2] }
    }

    fn resampling(vectors: &Vectors) -> Resampling<'_> {
        Resampling::new(vectors, Stream::named(7, "keep"), |copy| Stream::named(7, &format!("offset/{copy}")))
    }

    #[test]
    fn a_scale_of_one_is_the_set_itself() {
        let vectors = set(500, |i| i + 1);
        let starts = resampling(&vectors).starts(1.0, Time::from_secs_f64(0.25));
        let expected: Vec<_> = (0..250).map(|i| (i * 1_000_000, i as u32)).collect();
        assert_eq!(starts.iter().map(|s| (s.at.ns(), s.vector)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_share_is_kept_and_copies_are_whole() {
        let vectors = set(10_000, |_| 1000);
        let (resampling, end) = (resampling(&vectors), Time::from_secs_f64(10.0));
        for scale in [0.1, 0.5, 0.9, 1.0, 1.3, 2.0, 3.7] {
            let starts = resampling.starts(scale, end);
            let partial: f64 = scale - f64::floor(scale);
            // Coin flips: five standard deviations.
            let slack = 5.0 * (partial * (1.0 - partial) * 1e4).sqrt();
            let count = starts.len() as f64;
            assert!((count - scale * 1e4).abs() <= slack, "{count} at {scale}");
            assert!(starts.windows(2).all(|pair| pair[0].at <= pair[1].at));
        }
    }

    #[test]
    fn a_larger_scale_keeps_what_a_smaller_one_has() {
        let vectors = set(2_000, |_| 1000);
        let (resampling, end) = (resampling(&vectors), Time::from_secs_f64(2.0));
        let scales = [0.2, 0.7, 1.0, 1.5, 2.5];
        for pair in scales.windows(2) {
            let [few, many] = [pair[0], pair[1]].map(|scale| resampling.starts(scale, end));
            assert!(few.iter().all(|start| many.binary_search(start).is_ok()), "{pair:?}");
        }
    }

    /// A copy keeps the distances between its connections, going round, and is not laid exactly over the first.
    #[test]
    fn copies_are_turned_as_a_whole() {
        let vectors = set(1_000, |_| 1000);
        let starts = resampling(&vectors).starts(2.0, Time::from_secs_f64(1.0));
        assert_eq!(starts.len(), 2_000, "the set lasts a second: nothing is moved out of it");
        let turned: Vec<u64> = starts
            .iter()
            .filter(|s| s.copy == 1)
            .map(|s| (s.at.ns() / 1000 + 1_000_000 - u64::from(s.vector) * 1000) % 1_000_000)
            .collect();
        assert!(turned[0] > 0 && turned.iter().all(|&offset| offset == turned[0]), "{}", turned[0]);
    }

    #[test]
    fn a_load_is_met_by_bytes() {
        // Nine of ten are mice; of the others each has as much as ninety.
        let vectors = set(20_000, |i| if i.is_multiple_of(10) { 90_000 } else { 1_000 });
        let resampling = resampling(&vectors);
        // All that begin and end within: a round trip of 20 ms, the request, half a round trip.
        let window = [Time::from_secs_f64(2.0), Time::from_secs_f64(10.0)];
        // 8,000 connections: 7,200 of 1,000 bytes in a packet, 800 of 90,000 in 62, a SYN/ACK and a FIN each and an
        // acknowledgement of the request.
        let all = 7_200.0 * 1_040.0 + 800.0 * (90_000.0 + 62.0 * 40.0) + 8_000.0 * 120.0;
        for share in [0.05, 0.5, 0.95, 1.7, 4.2] {
            let wanted = share * all;
            let found = resampling.population(wanted, window, [false, true], path).expect("there is as much");
            let offered: u64 = resampling
                .starts(found.scale, Time::from_secs_f64(10.0))
                .iter()
                .filter(|start| !found.without.contains(&(start.copy, start.vector)))
                .map(|start| vectors.get(start.vector).offers(start.at, window, path(0, 0))[1])
                .sum();
            assert_eq!(offered as f64, found.offered);
            assert!((found.offered / wanted - 1.0).abs() <= AIM, "{offered} of {wanted}: {found:?}");
            let scale = found.scale;
            // The draws of 800 elephants decide; of copies besides, how many lie in the window.
            assert!((scale / share - 1.0).abs() < 0.2, "{scale} for {share}");
        }
        let Err(Unmet::Beyond(most)) = resampling.population(1e15, window, [false, true], path) else {
            panic!("there is not as much")
        };
        assert!(most > 100.0 * all);
        let late = [Time::from_secs_f64(30.0), Time::from_secs_f64(40.0)];
        assert_eq!(
            resampling.population(1e6, late, [true; 2], path),
            Err(Unmet::Beyond(0.0)),
            "the set is over by then"
        );
    }

    /// Loads of a fraction of the largest connections, which the first connections drawn miss by half or more: one in
    /// ten has 90,000 bytes.
    #[test]
    fn a_small_load_goes_without_what_exceeds_it() {
        let vectors = set(20_000, |i| if i.is_multiple_of(10) { 90_000 } else { 1_000 });
        let window = [Time::ZERO, Time::from_secs_f64(20.0)];
        for seed in 0..20 {
            let resampling = Resampling::new(&vectors, Stream::named(seed, "keep"), |_| Stream::named(seed, "offset"));
            for wanted in [1_160.0, 11_600.0, 40_000.0, 120_000.0] {
                let found = resampling.population(wanted, window, [false, true], path).expect("mice fill every gap");
                // A mouse is 1,160 bytes, of which the nearest number is off by half of one at most.
                let bound = (AIM * wanted).max(580.0).min(TOLERANCE * wanted);
                assert!((found.offered - wanted).abs() <= bound, "{wanted}: {found:?}");
            }
            // Half of a mouse: neither none nor one is it.
            let unmet = resampling.population(600.0, window, [false, true], path);
            assert!(matches!(unmet, Err(Unmet::Between(_))), "{unmet:?}");
        }
    }

    /// A window of a hundredth of the answer makes it take a hundred round trips: half of it is in half of the time.
    #[test]
    fn what_is_offered_when_follows_the_path() {
        let vectors = set(1, |_| 100_000);
        let window = [Time::ZERO, Time::ZERO + Span::from_ms(1_050)];
        let slow = Path { rtt: Span::from_ms(20), windows: [1_000; 2] };
        let [all, half] = [path(0, 0), slow].map(|path| vectors.get(0).offers(Time::ZERO, window, path)[1] as f64);
        // 69 packets and 120 bytes besides; the answer begins after 40 ms and takes 99 round trips.
        assert_eq!(all, 100_000.0 + 69.0 * 40.0 + 120.0);
        assert!((half / all - 1_010.0 / 1_980.0).abs() < 0.01, "{half} of {all}");
    }
}
