//! A constant-rate stream that heeds nothing: packets of one size at even gaps, as UDP cross traffic in the studies.

use base::Rate;
use base::Span;
use base::Stream;

/// The sending times of a constant-rate stream. Rounding to nanoseconds is carried, so the rate is kept for ever.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: Rate,
    packet_bytes: u32,
    /// What earlier gaps left over, in units of 1/rate nanoseconds.
    remainder: u64,
}

impl Cbr {
    /// A stream of `rate`, IP header included, in IP packets of `packet_bytes`.
    pub fn new(rate: Rate, packet_bytes: u32) -> Self {
        Self { rate, packet_bytes, remainder: 0 }
    }

    /// The size of its IP packets.
    pub fn packet_bytes(&self) -> u32 {
        self.packet_bytes
    }

    /// How long after its start the stream sends its first packet: a random phase, uniform within one gap, so that
    /// several streams do not send in step.
    pub fn first_gap(&self, stream: &mut Stream) -> Span {
        Span::from_ns(stream.below((self.work() / self.rate.bps()).max(1)))
    }

    /// The time from one packet to the next.
    #[inline]
    pub fn gap(&mut self) -> Span {
        let work = self.work() + self.remainder;
        self.remainder = work % self.rate.bps();
        Span::from_ns(work / self.rate.bps())
    }

    fn work(&self) -> u64 {
        u64::from(self.packet_bytes) * 8_000_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_to_the_nanosecond() {
        // 573 bytes at 250 kb/s: 18.336 ms; at 7 b/s a gap is no whole number of nanoseconds.
        assert_eq!(Cbr::new(Rate::from_bps(250_000), 573).gap(), Span::from_us(18_336));
        let mut odd = Cbr::new(Rate::from_bps(7), 1);
        assert_eq!((0..7).map(|_| odd.gap().ns()).sum::<u64>(), 8_000_000_000);
    }

    #[test]
    fn phases_fill_one_gap() {
        let cbr = Cbr::new(Rate::from_bps(1_000_000), 125);
        let mut stream = Stream::named(1, "traffic/0/flow/0");
        let n = 20_000;
        let phases: Vec<f64> = (0..n).map(|_| cbr.first_gap(&mut stream).secs_f64()).collect();
        assert!(phases.iter().all(|&p| p < 0.001));
        // Four standard errors of the mean of a uniform.
        let mean = phases.iter().sum::<f64>() / n as f64;
        assert!((mean - 0.0005).abs() < 4.0 * 0.001 / (12.0 * n as f64).sqrt());
    }
}
