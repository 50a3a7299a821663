//! On/off sources send at a constant rate for a while, are silent for a while, and so on, whatever becomes of the
//! packets.
//!
//! With exponential times they model voice with silence suppression. With Pareto times of infinite variance, many of
//! them together are self-similar: a tail index a gives the Hurst parameter (3 - a)/2 (Willinger, Taqqu, Sherman and
//! Wilson, IEEE/ACM ToN 5(1), 1997).
//!
//! | there | here |
//! |---|---|
//! | on- and off-period | `on`, `off` |
//! | rate while on | `pacing` |
//!
//! Packets are due at even distances of the time spent on: the part of a distance that an on-period leaves over counts
//! in the next. So the mean rate is exactly the rate while on times the share of time on, however short the on-periods.
//! Instead, ns-2's `Application/Traffic/Exponential` and `Pareto` round each on-period to whole packets, at least one.
//! A source starts in its long-term rhythm, in the middle of a period, which is one of on-time with the probability of
//! being on.

use super::datagrams::{self, Packets, RATE, rate};
use super::keys::{FLOWS, START, start};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::units;
use crate::written::Written;
use base::{Distribution, Rate, Span, Stream};
use traffic::{Cbr, Datagram, Residual};

/// Unresponsive packets at a constant rate, at times.
#[derive(Clone, Debug)]
pub struct OnOff {
    /// How many sources.
    pub flows: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
    /// Rate of all together while all are on, IP packets.
    pub rate: Rate,
    /// Size of each packet, bytes (IP).
    pub packet: u32,
    /// How long a source is on, seconds.
    pub on: Distribution,
    /// How long it is off, seconds.
    pub off: Distribution,
}

const RATE_ON: Key = Key { doc: "rate of all together while all are on, IP packets", ..RATE };
/// The packets of ns-2.35's `Application/Traffic/Exponential` and `Pareto`, and their mean times on and off.
const PACKET: Key = Key::packet("210b");
const MEAN_S: f64 = 0.5;
const ON: Key = Key {
    name: "on",
    takes: Takes::Drawn("time or distribution"),
    default: "exponential, mean 500ms",
    doc: "how long a source is on",
};
const OFF: Key = Key { name: "off", doc: "how long it is off", ..ON };

impl Kind for OnOff {
    const ROW: Row = Row {
        name: "onoff",
        called: &["pareto", "bursts"],
        models: &[Model {
            name: "",
            doc: "Unresponsive UDP packets at a constant rate, at times: on and off periods of any distribution",
            source: "ns-2.35, Application/Traffic/Exponential and Pareto; Willinger, Taqqu, Sherman and Wilson, ToN 5(1), \
                     1997",
            keys: &[FLOWS, RATE_ON, PACKET, ON, OFF, START],
            words: &[("", "{flows|on/off UDP source} ({rate} while {flows:all are }on)")],
        }],
        ..datagrams::UNRESPONSIVE
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        /// A mean on-period below this is a mistaken unit: no packet on the fastest link takes so little.
        const SHORTEST: f64 = 1e-6;
        /// The most on-periods from one packet to the next. Each one is drawn, even if no packet comes of it.
        const MOST_BETWEEN: f64 = 1e4;
        let (block, around) = (asking.block, asking.around);
        let flows = FLOWS.count(block)?;
        let rate = rate(block, around, flows)?;
        let packet = PACKET.size(block)?;
        let period = |key: &Key, least: f64| {
            block.read(key.name, Distribution::Exponential { mean: MEAN_S }, |entry| {
                let period = distribution::read(entry, Quantity::Time)?;
                match period.mean() {
                    mean if mean < least => {
                        Err(entry.expected(format!("times of at least {} in the mean", units::write_seconds(least))))
                    }
                    mean if mean > units::MAX_SECONDS => {
                        Err(entry.expected("times of a finite mean: with shape above 1, and shorter than any run"))
                    }
                    _ => Ok(period),
                }
            })
        };
        let (on, off) = (period(&ON, SHORTEST)?, period(&OFF, 0.0)?);
        let distance = f64::from(packet) * 8.0 * f64::from(flows) / rate.bps_f64();
        if on.mean() * MOST_BETWEEN < distance {
            return Err(match block.get(ON.name) {
                Some(entry) => entry.expected(format!(
                    "times of at least {} in the mean, a {MOST_BETWEEN}th of what a packet takes",
                    units::write_span(Span::from_us((distance * 1e6 / MOST_BETWEEN).ceil() as u64))
                )),
                None => block.get(RATE.name).expect("a rate was read").expected(format!(
                    "a rate at which a packet takes at most {MOST_BETWEEN} times on of {} in the mean",
                    units::write_seconds(on.mean())
                )),
            });
        }
        let start = start(block, around.duration)?;
        let written = vec![
            (FLOWS.name, Written::Integer(u64::from(flows))),
            (RATE.name, Written::Text(units::write_rate(rate))),
            (PACKET.name, Written::Text(units::write_bytes(f64::from(packet)))),
            (ON.name, distribution::write(&on, Quantity::Time)),
            (OFF.name, distribution::write(&off, Quantity::Time)),
            (START.name, distribution::write(&start, Quantity::Time)),
        ];
        Ok(Asked::known(Self { flows, start, rate, packet, on, off }, written))
    }
}

impl Demand for OnOff {
    fn carries(&self) -> Carries {
        Carries::Datagrams
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let periods = Periods::new(&self.on, &self.off);
        datagrams::sources(site, (self.flows, &self.start), out, |number, stream| {
            let rate = datagrams::share(self.rate, number, self.flows);
            Switched::new(stream, rate, self.packet, self.on.clone(), self.off.clone(), &periods)
        });
    }

    fn expected(&self) -> Expected {
        // No rate counts as unserved: bursts above the link's rate are bounded by the limit of the queue.
        Expected::Datagrams { flows: self.flows, bps: 0.0, bytes: self.packet.into() }
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn packet_sizes(&self) -> Vec<f64> {
        vec![f64::from(self.packet)]
    }
}

/// Twice the longest run. A packet beyond it never comes.
const LONGEST: Span = Span::from_secs(2_000_000);

/// The periods of a source, which sources share.
#[derive(Clone, Debug)]
struct Periods {
    on: Residual,
    off: Residual,
}

/// An on/off source.
#[derive(Clone, Debug)]
struct Switched {
    stream: Stream,
    on: Distribution,
    off: Distribution,
    pacing: Cbr,
    /// The rest of the on-period under way.
    left: Span,
    /// The silence before the first packet's distance begins to run, and that distance.
    first: Option<(Span, Span)>,
}

impl Periods {
    /// The periods of sources that are on and off for spans of these distributions, in seconds. Both means are finite,
    /// and that of `on` is above zero.
    fn new(on: &Distribution, off: &Distribution) -> Self {
        Self { on: Residual::of(on), off: Residual::of(off) }
    }

    /// The share of time a source is on.
    fn share_on(&self) -> f64 {
        self.on.mean() / (self.on.mean() + self.off.mean())
    }
}

impl Switched {
    /// A source of `rate` while it is on, IP header included, in IP packets of `packet_bytes`.
    fn new(
        mut stream: Stream,
        rate: Rate,
        packet_bytes: u32,
        on: Distribution,
        off: Distribution,
        periods: &Periods,
    ) -> Self {
        let pacing = Cbr::new(rate, packet_bytes);
        let distance = pacing.first_gap(&mut stream);
        let is_on = stream.chance(periods.share_on());
        let (silence, left) = if is_on {
            (Span::ZERO, Span::from_secs_f64(periods.on.draw(&mut stream)))
        } else {
            (Span::from_secs_f64(periods.off.draw(&mut stream)), Span::from_secs_f64(on.draw(&mut stream)))
        };
        Self { stream, on, off, pacing, left, first: Some((silence, distance)) }
    }
}

impl Packets for Switched {
    /// The next packet; `None` if it lies beyond any run.
    fn next_datagram(&mut self) -> Option<Datagram> {
        let (mut gap, mut distance) = self.first.take().unwrap_or_else(|| (Span::ZERO, self.pacing.gap()));
        while distance > self.left {
            distance = distance.saturating_sub(self.left);
            let silence = Span::from_secs_f64(self.off.draw(&mut self.stream));
            gap = gap + self.left + silence;
            self.left = Span::from_secs_f64(self.on.draw(&mut self.stream));
            if gap > LONGEST {
                return None;
            }
        }
        self.left = self.left.saturating_sub(distance);
        Some(Datagram { gap: gap + distance, bytes: self.pacing.packet_bytes() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;

    fn source(number: u32, on: &Distribution, off: &Distribution) -> Switched {
        let stream = Stream::named(1, &format!("traffic/0/source/{number}"));
        Switched::new(stream, Rate::from_bps(800_000), 1_000, on.clone(), off.clone(), &Periods::new(on, off))
    }

    /// The instants of all packets up to `end`.
    fn instants(mut source: Switched, end: Time) -> Vec<Time> {
        let mut now = Time::ZERO;
        std::iter::from_fn(|| {
            now += source.next_datagram()?.gap;
            (now <= end).then_some(now)
        })
        .collect()
    }

    #[test]
    fn constant_periods_are_kept_to_the_nanosecond() {
        // A packet each 10 ms of time on; 25 ms on and 75 ms off: five packets in two cycles, for ever.
        let (on, off) = (Distribution::Constant(0.025), Distribution::Constant(0.075));
        for number in 0..20 {
            let sent = instants(source(number, &on, &off), Time::from_secs_f64(100.0));
            assert!((2_499..=2_501).contains(&sent.len()), "{} packets in 1,000 cycles", sent.len());
            assert!(sent.windows(6).all(|w| w[5].since(w[0]) == Span::from_ms(200)), "source {number}");
            let mut gaps: Vec<u64> = sent.windows(2).map(|w| w[1].since(w[0]).ns() / 1_000_000).collect();
            gaps.dedup();
            assert!(gaps.iter().all(|gap| [10, 85].contains(gap)), "on or across one silence: {gaps:?}");
        }
    }

    #[test]
    fn without_silence_it_is_a_constant_rate() {
        let (on, off) = (Distribution::Exponential { mean: 0.003 }, Distribution::Constant(0.0));
        let sent = instants(source(0, &on, &off), Time::from_secs_f64(10.0));
        assert!(sent.windows(2).all(|w| w[1].since(w[0]) == Span::from_ms(10)));
    }

    /// The mean rate from the first instant on: short on-periods are not rounded up to whole packets. Renewal theory:
    /// over a long time t the time on of exponential periods has the variance 2 t a²b²/(a+b)³ (Cox 1962, §7.4).
    #[test]
    fn the_mean_rate_is_the_share_of_time_on() {
        for (a, b) in [(0.5, 0.5), (0.004, 0.016)] {
            let (on, off) = (Distribution::Exponential { mean: a }, Distribution::Exponential { mean: b });
            let (n, t): (u32, f64) = (400, 50.0);
            let count = |number| instants(source(number, &on, &off), Time::from_secs_f64(t)).len() as f64;
            let mean = (0..n).map(count).sum::<f64>() / f64::from(n);
            let wanted = t * 100.0 * a / (a + b);
            let sd = 100.0 * (2.0 * t * a * a * b * b / (a + b).powi(3)).sqrt();
            // Four standard errors of the mean of n sources, and that a count is whole.
            let bound = 4.0 * ((sd * sd + 1.0 / 12.0) / f64::from(n)).sqrt();
            assert!((mean - wanted).abs() < bound, "{mean} packets against {wanted}, within {bound}");
        }
    }

    /// The same in the first second alone, with periods so long that a source which began on, or at the beginning of a
    /// period, would be far off: stationary from the start.
    #[test]
    fn it_starts_in_its_long_term_rhythm() {
        let on = Distribution::Pareto { scale: 20.0, shape: 1.5 };
        let off = Distribution::Pareto { scale: 60.0, shape: 1.5 };
        let n = 4_000;
        let first = |number| instants(source(number, &on, &off), Time::from_secs_f64(1.0)).len() as f64 / 100.0;
        let mean = (0..n).map(first).sum::<f64>() / f64::from(n);
        assert_eq!(Periods::new(&on, &off).share_on(), 0.25);
        // The share of time on is 1/4; within a second a source is all but always on or off, so that four standard
        // errors are those of a coin, and its residual's table is within a thousandth of the mean.
        let bound = 4.0 * (0.25_f64 * 0.75 / f64::from(n)).sqrt() + 0.001;
        assert!((mean - 0.25).abs() < bound, "{mean}");
    }
}
