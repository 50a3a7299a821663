//! HyStart++ slows growth down to a quarter when a round of slow start takes longer than the one before. If the delay
//! goes away, slow start goes on. If it stays for five rounds, slow start is over, mostly before the queue overflows.
//!
//! Source: RFC 9406.
//!
//! | RFC                    | here                |
//! |------------------------|---------------------|
//! | `windowEnd`            | `round_end`         |
//! | `lastRoundMinRTT`      | `last_shortest`     |
//! | `currentRoundMinRTT`   | `shortest`          |
//! | `rttSampleCount`       | `samples`           |
//! | `cssBaselineMinRtt`    | `baseline`          |
//! | `CSS`, `CSS_ROUNDS`    | `slower_rounds`     |
//! | `L`                    | `most_segments`     |
//!
//! # Deviations
//! - Where the window is a whole number of segments, a part of a segment is kept for the next acknowledgement.

use super::{Acked, Delivery, Window};
use base::Span;

/// The constants of RFC 9406 §4.2 and §4.3.
const MIN_RTT_THRESH: Span = Span::from_ms(4);
const MAX_RTT_THRESH: Span = Span::from_ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// Segments that one acknowledgement may add, where what is sent is not paced.
const L: f64 = 8.0;
/// Stands for a round trip that is not known.
const NEVER: Span = Span::from_ns(u64::MAX);

/// The state of HyStart++, for as long as the first slow start lasts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Start {
    round_end: u64,
    last_shortest: Span,
    shortest: Span,
    samples: u32,
    /// Rounds of conservative slow start so far, the one it began in included; 0 in slow start.
    slower_rounds: u32,
    baseline: Span,
    most_segments: f64,
    /// Growth that is not a whole segment yet, bytes.
    owed: f64,
}

base::left_whole!(Start);

impl Start {
    /// The state at the beginning of slow start.
    pub const fn new(is_paced: bool) -> Self {
        Self {
            round_end: 0,
            last_shortest: NEVER,
            shortest: NEVER,
            samples: 0,
            slower_rounds: 0,
            baseline: NEVER,
            most_segments: if is_paced { f64::INFINITY } else { L },
            owed: 0.0,
        }
    }

    /// Whether growth goes on at a fraction of its speed.
    pub fn is_conservative(&self) -> bool {
        self.slower_rounds > 0
    }

    /// Takes an acknowledgement, and sets the threshold if slow start is over.
    pub fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        if !window.in_slow_start() {
            return;
        }
        if delivery.una >= self.round_end {
            self.end_round(window, delivery.nxt);
        }
        let Some(rtt) = delivery.rtt else { return };
        self.shortest = self.shortest.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if self.is_conservative() {
            if self.shortest < self.baseline {
                (self.slower_rounds, self.baseline) = (0, NEVER);
            }
        } else if self.last_shortest < NEVER {
            let threshold = (self.last_shortest / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if self.shortest >= self.last_shortest + threshold {
                (self.slower_rounds, self.baseline) = (1, self.shortest);
            }
        }
    }

    /// Lets the window grow when new data is acknowledged in slow start.
    pub fn grow(&mut self, window: &mut Window, acked: &Acked) {
        let step = (acked.bytes as f64).min(self.most_segments * acked.mss);
        self.owed += if self.is_conservative() { step / CSS_GROWTH_DIVISOR } else { step };
        let whole = if acked.whole_segments { (self.owed / acked.mss).floor() * acked.mss } else { self.owed };
        self.owed -= whole;
        window.cwnd = (window.cwnd + whole).min(window.ssthresh);
    }

    /// Ends a round, when everything is acknowledged that was out at its beginning.
    fn end_round(&mut self, window: &mut Window, nxt: u64) {
        if self.slower_rounds >= CSS_ROUNDS {
            // §4.2: congestion avoidance
            window.ssthresh = window.cwnd;
        }
        self.slower_rounds += u32::from(self.is_conservative());
        (self.round_end, self.last_shortest) = (nxt, self.shortest);
        (self.shortest, self.samples) = (NEVER, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;

    const MSS: f64 = 1_000.0;

    /// A connection in slow start whose rounds take what they are told to.
    struct Flow {
        start: Start,
        window: Window,
        una: u64,
        nxt: u64,
    }

    impl Flow {
        fn new() -> Self {
            let window = Window { cwnd: 16.0 * MSS, ssthresh: f64::INFINITY };
            Self { start: Start::new(false), window, una: 1, nxt: 16_001 }
        }

        /// A round of acknowledgements, one a segment, after this round trip each; the window in segments after it.
        fn round(&mut self, rtt: Span) -> f64 {
            self.acknowledge(rtt);
            while self.una + 1_000 < self.start.round_end && self.window.in_slow_start() {
                self.acknowledge(rtt);
            }
            self.window.cwnd / MSS
        }

        fn acknowledge(&mut self, rtt: Span) {
            self.una += 1_000;
            let (una, nxt, now) = (self.una, self.nxt, Time::ZERO);
            let delivery = Delivery { bytes: 1_000, marked: 0, una, nxt, rtt: Some(rtt), one_way: None, mss: MSS, now };
            self.start.delivered(&mut self.window, &delivery);
            let acked = Acked { bytes: 1_000, mss: MSS, byte_counting: true, whole_segments: false, srtt: None, now };
            if self.window.in_slow_start() {
                self.start.grow(&mut self.window, &acked);
            }
            self.nxt = self.una + self.window.cwnd as u64;
        }
    }

    #[test]
    fn rounds_as_long_as_the_last_double_the_window() {
        // 80 ms: a round has to be 10 ms longer. 9 ms more are not enough, once or twice. The acknowledgement that ends
        // a round is the first of the next one: 15 of the 16 segments, 30 of 31, 60 of 61.
        let mut flow = Flow::new();
        assert_eq!(flow.round(Span::from_ms(80)), 31.0);
        assert_eq!(flow.round(Span::from_ms(89)), 61.0);
        assert_eq!(flow.round(Span::from_ms(98)), 121.0);
        assert!(!flow.start.is_conservative());
    }

    #[test]
    fn the_threshold_has_bounds() {
        // An eighth of 16 ms is 2 ms and of 400 ms 50 ms: 4 ms and 16 ms hold.
        for (first, second, is_longer) in [(16, 19, false), (16, 20, true), (400, 415, false), (400, 416, true)] {
            let mut flow = Flow::new();
            flow.round(Span::from_ms(first));
            flow.round(Span::from_ms(second));
            assert_eq!(flow.start.is_conservative(), is_longer, "{first} ms, then {second} ms");
        }
    }

    #[test]
    fn a_longer_round_quarters_growth_and_five_end_it() {
        let mut flow = Flow::new();
        flow.round(Span::from_ms(80));
        // The eighth sample of 90 ms is the first that tells: seven of the 30 segments count whole, 23 a quarter.
        let mut grown = flow.round(Span::from_ms(90));
        assert_eq!(grown, 31.0 + 7.0 + 23.0 / 4.0);
        // That round was the first of five. The window is not a whole number, the acknowledgements of a round are.
        for _ in 2..=5 {
            let before = grown;
            grown = flow.round(Span::from_ms(90));
            assert!(((before - 1.0) / 4.0..=before / 4.0).contains(&(grown - before)), "{before} to {grown}");
            assert!(flow.window.in_slow_start());
        }
        // The next acknowledgement ends the fifth.
        assert_eq!(flow.round(Span::from_ms(90)), grown);
        assert_eq!(flow.window.ssthresh, flow.window.cwnd);
    }

    #[test]
    fn a_delay_that_passes_does_not_end_it() {
        let mut flow = Flow::new();
        flow.round(Span::from_ms(80));
        flow.round(Span::from_ms(95));
        assert!(flow.start.is_conservative());
        // As long as the round that began it is not shorter; the eighth sample of one that is, ends it.
        flow.round(Span::from_ms(95));
        assert!(flow.start.is_conservative());
        let before = flow.window.cwnd / MSS;
        let grown = flow.round(Span::from_ms(94)) - before;
        assert!(!flow.start.is_conservative());
        // Seven of them quarter, the others whole: all of the window, or but for the one that is of the next round.
        let whole = grown - 7.0 / 4.0 + 7.0;
        assert!((before - 1.0..=before).contains(&whole), "{grown} of {before}");
    }

    #[test]
    fn one_acknowledgement_adds_eight_segments_at_most() {
        let acked =
            |bytes| Acked { bytes, mss: MSS, byte_counting: true, whole_segments: true, srtt: None, now: Time::ZERO };
        for (is_paced, grown) in [(false, 8.0), (true, 20.0)] {
            let (mut start, mut window) = (Start::new(is_paced), Window { cwnd: 0.0, ssthresh: f64::INFINITY });
            start.grow(&mut window, &acked(20_000));
            assert_eq!(window.cwnd, grown * MSS);
        }
        // Whole segments: four of a quarter make one.
        let mut start = Start { slower_rounds: 1, ..Start::new(false) };
        let mut window = Window { cwnd: 0.0, ssthresh: f64::INFINITY };
        let grown: Vec<f64> = (0..5)
            .map(|_| {
                start.grow(&mut window, &acked(1_000));
                window.cwnd / MSS
            })
            .collect();
        assert_eq!(grown, [0.0, 0.0, 0.0, 1.0, 1.0]);
    }
}
