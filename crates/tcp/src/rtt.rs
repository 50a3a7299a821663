//! This file estimates the round-trip time and works out the retransmission timeout. It does so by RFC 6298 or, with
//! [`RtoFloor::Variance`], as Linux does (tcp_rtt_estimator). In Linux the largest deviation of a window counts, the
//! deviation decays once a window, and a round trip that is shorter than expected adds little to it. With the ways of
//! repair of ns-2 it does so in whole ticks (rtt_update() of tcp.cc, ns-2.35).

use crate::stack::{Config, RtoFloor};
use base::Span;

/// ns-2's timer runs for so many ticks at least (rtt_timeout()).
const LEAST_TICKS: u64 = 2;

/// Smoothed round-trip time, its variation, and the timeout that follows.
#[derive(Clone, PartialEq, Debug)]
pub struct RttEstimator {
    /// Eight times the smoothed round-trip time, in nanoseconds; 0 before the first sample.
    srtt_8: u64,
    /// Four times the mean deviation of the round-trip time, in nanoseconds.
    var_4: u64,
    /// Linux's largest deviation in this window, four times and no less than the minimum.
    peak_4: u64,
    /// The deviation that Linux's timeout goes by, four times.
    held_4: u64,
    /// The acknowledgement of this ends the window.
    window_end: u64,
    /// Timeout without back-off.
    rto: Span,
    /// The end of the tick in which the last one ended.
    tick_end: u64,
    /// Doublings since the last sample.
    backoff: u32,
    /// Eight times the smoothed round-trip time in nanoseconds, where `srtt_8` counts ticks and a pacer needs it.
    exact_8: u64,
}

base::packed!(RttEstimator { srtt_8, var_4, peak_4, held_4, window_end, rto, tick_end, backoff, exact_8 });

impl RttEstimator {
    /// An estimator before any measurement.
    pub const fn new(config: &Config) -> Self {
        let rto = config.rto_initial;
        Self { srtt_8: 0, var_4: 0, peak_4: 0, held_4: 0, window_end: 0, rto, tick_end: 0, backoff: 0, exact_8: 0 }
    }

    /// Takes a measurement of a segment that was sent once (Karn), when everything before `una` is acknowledged and
    /// `nxt` comes next.
    pub fn sample(&mut self, rtt: Span, una: u64, nxt: u64, config: &Config) {
        let tick = config.granularity.ns();
        // A clock of `granularity` counts ticks, and a round trip takes at least one.
        let rtt = if tick > 1_000_000 {
            if config.is_paced() {
                self.exact_8 =
                    if self.exact_8 == 0 { rtt.ns() * 8 } else { self.exact_8 - self.exact_8 / 8 + rtt.ns() };
            }
            ((rtt.ns() + tick / 2) / tick).max(1) * tick
        } else {
            rtt.ns().max(1)
        };
        if config.repair.is_of_ns2() {
            return self.sample_in_ticks(rtt.div_ceil(tick), config);
        }
        let is_linux = config.rto_floor == RtoFloor::Variance;
        if self.srtt_8 == 0 {
            // RFC 6298 §2.2
            self.srtt_8 = rtt * 8;
            self.var_4 = rtt * 2;
            self.held_4 = self.var_4.max(config.rto_min.ns());
            (self.peak_4, self.window_end) = (self.held_4, nxt);
        } else {
            // RFC 6298 §2.3, the variation first
            let expected = self.srtt_8 / 8;
            let deviation = expected.abs_diff(rtt);
            if is_linux && rtt < expected && deviation > self.var_4 / 4 {
                self.var_4 += (deviation - self.var_4 / 4) / 8;
            } else {
                self.var_4 = self.var_4 - self.var_4 / 4 + deviation;
            }
            self.srtt_8 = self.srtt_8 - self.srtt_8 / 8 + rtt;
            if is_linux {
                self.hold_peak(una, nxt, config);
            }
        }
        let srtt = self.srtt_8 / 8;
        let rto = match config.rto_floor {
            RtoFloor::Whole => (srtt + self.var_4.max(tick)).max(config.rto_min.ns()),
            RtoFloor::Variance => srtt + self.held_4,
        };
        // With a clock of whole ticks no timer expires between two of them. Mostly it is the same tick as before, which
        // no division has to tell.
        if rto > self.tick_end || rto + tick <= self.tick_end {
            self.tick_end = rto.div_ceil(tick) * tick;
        }
        self.rto = Span::from_ns(self.tick_end.min(config.rto_max.ns()));
        self.backoff = 0;
    }

    /// Takes a measurement of so many ticks.
    fn sample_in_ticks(&mut self, rtt: u64, config: &Config) {
        let tick = config.granularity.ns();
        let (srtt_8, var_4) = (self.srtt_8 / tick, self.var_4 / tick);
        let (srtt_8, var_4) = if srtt_8 == 0 {
            (rtt * 8, rtt * 2)
        } else {
            let deviation = (srtt_8 / 8).abs_diff(rtt);
            ((srtt_8 - srtt_8 / 8 + rtt).max(1), (var_4 - var_4 / 4 + deviation).max(1))
        };
        (self.srtt_8, self.var_4) = (srtt_8 * tick, var_4 * tick);
        let rto = (srtt_8 / 8 + var_4).max(LEAST_TICKS) * tick;
        self.rto = Span::from_ns(rto.max(config.rto_min.ns()).min(config.rto_max.ns()));
        self.backoff = 0;
    }

    fn hold_peak(&mut self, una: u64, nxt: u64, config: &Config) {
        self.peak_4 = self.peak_4.max(self.var_4);
        self.held_4 = self.held_4.max(self.peak_4);
        if una > self.window_end {
            self.held_4 -= (self.held_4 - self.peak_4) / 4;
            (self.peak_4, self.window_end) = (config.rto_min.ns(), nxt);
        }
    }

    /// The timeout in force, back-off included.
    #[inline]
    pub fn rto(&self, config: &Config) -> Span {
        if self.backoff == 0 {
            return self.rto;
        }
        Span::from_ns((self.rto.ns() << self.backoff.min(10)).min(config.rto_max.ns()))
    }

    /// Doubles the timeout, when the timer has expired.
    pub fn back_off(&mut self, config: &Config) {
        self.backoff += 1;
        if self.backoff > config.rtt_forgotten_after {
            // The path may be another one (BSD's tcp_timer_rexmt, TCP_MAXRXTSHIFT / 4; ns-2's rtt_backoff).
            (self.srtt_8, self.exact_8) = (0, 0);
        }
    }

    /// How often the timeout has been doubled since the last sample.
    pub fn doublings(&self) -> u32 {
        self.backoff
    }

    /// Goes on with a back-off of so many doublings, whatever was sampled meanwhile.
    pub fn keep_doublings(&mut self, doublings: u32) {
        self.backoff = doublings;
    }

    /// Ends the back-off without a sample.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Raises the timeout with which the data phase starts after a SYN was lost (RFC 6298 §5.7).
    pub fn raise_initial(&mut self, rto: Span, config: &Config) {
        if self.srtt_8 == 0 {
            self.rto = self.rto.max(rto.min(config.rto_max));
        }
        self.backoff = 0;
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        (self.srtt_8 > 0).then(|| Span::from_ns(self.srtt_8 / 8))
    }

    /// Smoothed round-trip time as what paces needs it: not in ticks, whatever the clock of the timers is.
    #[inline]
    pub fn exact_srtt(&self) -> Option<Span> {
        if self.exact_8 > 0 { Some(Span::from_ns((self.exact_8 / 8).max(1))) } else { self.srtt() }
    }

    /// Mean deviation of the round-trip time, once measured.
    pub fn rttvar(&self) -> Option<Span> {
        (self.srtt_8 > 0).then(|| Span::from_ns(self.var_4 / 4))
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
        rtt.sample(Span::from_ms(100), 1, 1, &config);
        assert_eq!(rtt.rto(&config), Span::from_ms(300));
        rtt.sample(Span::from_ms(140), 1, 1, &config);
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
            rtt.back_off(&config);
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn after_four_timeouts_in_a_row_the_next_sample_is_the_first() {
        let config = Config { rtt_forgotten_after: 3, ..fine() };
        let mut rtt = RttEstimator::new(&config);
        rtt.sample(Span::from_ms(100), 1, 1, &config);
        (0..3).for_each(|_| rtt.back_off(&config));
        assert_eq!(rtt.srtt(), Some(Span::from_ms(100)));
        rtt.back_off(&config);
        assert_eq!(rtt.srtt(), None);
        // 300 ms, 16 times over.
        assert_eq!(rtt.rto(&config), Span::from_ms(4_800));
        rtt.sample(Span::from_ms(300), 1, 1, &config);
        assert_eq!((rtt.srtt(), rtt.rto(&config)), (Some(Span::from_ms(300)), Span::from_ms(900)));
    }

    #[test]
    fn the_minimum_applies_to_the_whole_or_to_the_variance() {
        let whole = Config { rto_min: Span::from_secs(1), ..fine() };
        let mut rtt = RttEstimator::new(&whole);
        rtt.sample(Span::from_ms(80), 1, 1, &whole);
        assert_eq!(rtt.rto(&whole), Span::from_secs(1));
        let variance = Config { rto_min: Span::from_ms(200), rto_floor: RtoFloor::Variance, ..fine() };
        let mut rtt = RttEstimator::new(&variance);
        for una in 1..200 {
            rtt.sample(Span::from_ms(80), una, una, &variance);
        }
        assert_eq!(rtt.rto(&variance), Span::from_ms(280));
    }

    #[test]
    fn linux_holds_the_largest_deviation_for_a_window() {
        let linux = Config { rto_min: Span::from_ms(200), rto_floor: RtoFloor::Variance, ..fine() };
        let mut rtt = RttEstimator::new(&linux);
        (1..100).for_each(|una| rtt.sample(Span::from_ms(100), una, una, &linux));
        // One round trip of 500 ms: the mean becomes 150 ms, the deviation 400 ms and what is left of the old ones,
        // 200 ms x 0.75^99.
        rtt.sample(Span::from_ms(500), 100, 200, &linux);
        let round = |span: Span| (span.ns() + 500_000) / 1_000_000;
        assert_eq!(round(rtt.rto(&linux)), 550);
        // A shorter one than expected, by 50 ms: less than the 100 ms of the mean deviation, which it lowers; but until
        // the window is through, which ends with 200, the largest holds. The mean is 143.75 ms.
        rtt.sample(Span::from_ms(100), 150, 250, &linux);
        assert_eq!(round(rtt.rto(&linux)), 544);
        // RFC 6298 alone: 143.75 + 0.75 x 400 + 50.
        let rfc = Config { rto_min: Span::ZERO, ..fine() };
        let mut plain = RttEstimator::new(&rfc);
        (1..100).for_each(|una| plain.sample(Span::from_ms(100), una, una, &rfc));
        plain.sample(Span::from_ms(500), 100, 200, &rfc);
        plain.sample(Span::from_ms(100), 150, 250, &rfc);
        assert_eq!(round(plain.rto(&rfc)), 494);
        // The window after it has none as large: a quarter of what is above its largest goes. That is 350 ms, of the
        // sample before; with a mean of 138.3 ms the timeout is 138.3 + 400 - 12.5.
        rtt.sample(Span::from_ms(100), 201, 300, &linux);
        assert_eq!(round(rtt.rto(&linux)), 526);
        rtt.sample(Span::from_ms(100), 301, 400, &linux);
        assert!(round(rtt.rto(&linux)) < 526);
    }

    #[test]
    fn what_paces_does_not_count_in_ticks() {
        // Ticks of 10 ms make 10 ms of a round trip of 1 ms for the timers, as in BSD and ns-2, and 1 ms for a pacer.
        let config = Config { granularity: Span::from_ms(10), pacing: true, ..fine() };
        let mut rtt = RttEstimator::new(&config);
        for _ in 0..3 {
            rtt.sample(Span::from_ms(1), 1, 2, &config);
        }
        assert_eq!((rtt.srtt(), rtt.exact_srtt()), (Some(Span::from_ms(10)), Some(Span::from_ms(1))));
        let mut rtt = RttEstimator::new(&fine());
        rtt.sample(Span::from_ms(1), 1, 2, &fine());
        assert_eq!(rtt.exact_srtt(), rtt.srtt());
    }

    #[test]
    fn a_lost_syn_raises_the_timeout_no_further_than_it_may_go() {
        let config = Config { rto_max: Span::from_secs(2), ..fine() };
        let mut rtt = RttEstimator::new(&config);
        rtt.raise_initial(Span::from_secs(3), &config);
        assert_eq!(rtt.rto(&config), Span::from_secs(2));
    }
}
