//! Round-trip estimation and the retransmission timeout: RFC 6298.

use crate::stack::{Config, RtoFloor};
use base::Span;

/// Smoothed round-trip time, its variation, and the timeout that follows.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// Smoothed round-trip time, eight times, in nanoseconds; 0 before the first sample.
    srtt_8: u64,
    /// Its mean deviation, four times, in nanoseconds.
    var_4: u64,
    /// Timeout without back-off.
    rto: Span,
    /// Doublings since the last sample.
    backoff: u32,
}

impl RttEstimator {
    /// Before any measurement.
    pub const fn new(config: &Config) -> Self {
        Self { srtt_8: 0, var_4: 0, rto: config.rto_initial, backoff: 0 }
    }

    /// Takes a measurement of a segment that was sent once (Karn).
    pub fn sample(&mut self, rtt: Span, config: &Config) {
        let tick = config.granularity.ns();
        // A clock of `granularity` counts ticks, and a round trip takes at least one.
        let rtt = if tick > 1_000_000 { ((rtt.ns() + tick / 2) / tick).max(1) * tick } else { rtt.ns().max(1) };
        if self.srtt_8 == 0 {
            // RFC 6298 §2.2
            self.srtt_8 = rtt * 8;
            self.var_4 = rtt * 2;
        } else {
            // RFC 6298 §2.3, the variation first
            let deviation = (self.srtt_8 / 8).abs_diff(rtt);
            self.var_4 = self.var_4 - self.var_4 / 4 + deviation;
            self.srtt_8 = self.srtt_8 - self.srtt_8 / 8 + rtt;
        }
        let srtt = self.srtt_8 / 8;
        let rto = match config.rto_floor {
            RtoFloor::Whole => (srtt + self.var_4.max(tick)).max(config.rto_min.ns()),
            RtoFloor::Variance => srtt + self.var_4.max(config.rto_min.ns()),
        };
        // A clock of whole ticks cannot time out between two.
        let rto = rto.div_ceil(tick) * tick;
        self.rto = Span::from_ns(rto.min(config.rto_max.ns()));
        self.backoff = 0;
    }

    /// The timeout in force, back-off included.
    #[inline]
    pub fn rto(&self, config: &Config) -> Span {
        if self.backoff == 0 {
            return self.rto;
        }
        Span::from_ns((self.rto.ns() << self.backoff.min(10)).min(config.rto_max.ns()))
    }

    /// The timer expired.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Ends the back-off without a sample.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// After a SYN was lost the data phase starts with at least this timeout (RFC 6298 §5.7).
    pub fn raise_initial(&mut self, rto: Span) {
        if self.srtt_8 == 0 {
            self.rto = self.rto.max(rto);
        }
        self.backoff = 0;
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        (self.srtt_8 > 0).then(|| Span::from_ns(self.srtt_8 / 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::profile;

    fn fine() -> Config {
        let linux = profile("linux").expect("a built-in profile");
        Config {
            granularity: Span::from_ns(1),
            rto_min: Span::ZERO,
            rto_floor: RtoFloor::Whole,
            rto_initial: Span::from_secs(1),
            rto_max: Span::from_secs(60),
            ..(linux.config)()
        }
    }

    #[test]
    fn the_worked_sequence() {
        let config = fine();
        let mut rtt = RttEstimator::new(&config);
        assert_eq!(rtt.rto(&config), Span::from_secs(1));
        rtt.sample(Span::from_ms(100), &config);
        assert_eq!(rtt.rto(&config), Span::from_ms(300));
        rtt.sample(Span::from_ms(140), &config);
        // RTTVAR = 0.75 x 50 + 0.25 x 40 = 47.5 ms, SRTT = 105 ms, RTO = 105 + 190 ms.
        assert_eq!(rtt.srtt(), Some(Span::from_ms(105)));
        assert_eq!(rtt.rto(&config), Span::from_ms(295));
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum() {
        let config = fine();
        let mut rtt = RttEstimator::new(&config);
        let mut seen = vec![];
        for _ in 0..8 {
            seen.push(rtt.rto(&config).ns() / 1_000_000_000);
            rtt.back_off();
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_minimum_applies_to_the_whole_or_to_the_variance() {
        let whole = Config { rto_min: Span::from_secs(1), ..fine() };
        let mut rtt = RttEstimator::new(&whole);
        rtt.sample(Span::from_ms(80), &whole);
        assert_eq!(rtt.rto(&whole), Span::from_secs(1));
        let variance = Config { rto_min: Span::from_ms(200), rto_floor: RtoFloor::Variance, ..fine() };
        let mut rtt = RttEstimator::new(&variance);
        for _ in 0..200 {
            rtt.sample(Span::from_ms(80), &variance);
        }
        assert_eq!(rtt.rto(&variance), Span::from_ms(280));
    }
}
