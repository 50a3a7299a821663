//! Signals are spaced by the probability that has summed up since the last one. None comes soon after another, and one
//! comes for certain after a long while (RFC 8033 §5.4).

use base::Stream;

/// The sum below which no packet is signalled.
const SOONEST: f64 = 0.85;
/// The sum at which a signal is certain.
const CERTAIN: f64 = 8.5;

/// The sum, and what it was at the last signal.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    sum: f64,
    last: f64,
    /// From here on the sum goes on from 0.
    end: f64,
}

impl Default for Accumulator {
    fn default() -> Self {
        Self::until(f64::INFINITY)
    }
}

impl Accumulator {
    /// A sum that wraps around at `end`, more than any probability.
    pub fn until(end: f64) -> Self {
        Self { sum: 0.0, last: 0.0, end }
    }

    /// Adds `p` and decides; a signal begins a new sum.
    pub fn is_due(&mut self, p: f64, stream: &mut Stream) -> bool {
        self.add(p);
        self.is_signalled(p, stream)
    }

    /// Adds `p` for a packet.
    pub fn add(&mut self, p: f64) {
        self.sum = if p > 0.0 { self.sum + p } else { 0.0 };
        if self.sum >= self.end {
            self.sum -= self.end;
        }
    }

    /// Decides about the packet that `p` was added for.
    pub fn is_signalled(&mut self, p: f64, stream: &mut Stream) -> bool {
        let is_due = self.sum >= SOONEST && (self.sum >= CERTAIN || super::is_drawn(stream, p));
        if is_due {
            (self.sum, self.last) = (0.0, self.sum);
        }
        is_due
    }

    /// Begins a new sum.
    pub fn reset(&mut self) {
        self.sum = 0.0;
    }

    /// Goes on with the sum that made the last signal certain.
    pub fn resume(&mut self) {
        if self.last >= CERTAIN {
            self.sum = self.last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_spaced_by_the_sum() {
        let mut stream = Stream::named(1, "spacing");
        // At p = 1/64, sums exact, 0.85 is first passed by the 55th packet (0.859): none before.
        for _ in 0..1000 {
            let mut spacing = Accumulator::default();
            let gap = (1..).find(|_| spacing.is_due(1.0 / 64.0, &mut stream)).expect("a signal comes");
            // 8.5 is reached by the 544th.
            assert!((55..=544).contains(&gap), "{gap}");
        }
    }

    #[test]
    fn a_signal_comes_for_certain_at_a_sum_of_8_5() {
        let mut stream = Stream::named(1, "spacing");
        let mut spacing = Accumulator::default();
        (0..543).for_each(|_| spacing.add(1.0 / 64.0));
        assert!(!spacing.is_signalled(0.0, &mut stream));
        spacing.add(1.0 / 64.0);
        assert!(spacing.is_signalled(0.0, &mut stream));
        assert!(!spacing.is_signalled(1.0, &mut stream), "a new sum has begun");
    }

    #[test]
    fn a_sum_that_goes_on_after_signals_ends_where_it_wraps_around() {
        let mut stream = Stream::named(1, "spacing");
        let mut spacing = Accumulator::until(256.0);
        // At p = 1/16 the sum is certain from 8.5, packet 136, to below 256, packet 4095; 55/64 is 14 packets later.
        (0..135).for_each(|_| spacing.add(1.0 / 16.0));
        for _ in 136..4096 {
            assert!(spacing.is_due(1.0 / 16.0, &mut stream));
            spacing.resume();
        }
        assert!((4096..4096 + 14).all(|_| !spacing.is_due(1.0 / 16.0, &mut stream)));
    }
}
