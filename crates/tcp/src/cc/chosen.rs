//! A connection runs a controller, and with it what ends slow start before anything is lost.

use super::reno::Reno;
use super::{Acked, Algorithm, Congestion, Controller, Delivery, Window, hystart, hystart_pp};
use crate::memory::renewed;
use crate::stack::Config;

/// When slow start ends, before anything is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hystart {
    /// Only a loss or a mark ends it.
    Off,
    /// Delays and trains of acknowledgements end it, as in Linux ([`hystart`]).
    Linux,
    /// Delays end it, by way of a slower start (RFC 9406, [`hystart_pp`]).
    Plus,
}

/// What looks for the end of slow start.
#[derive(Clone, PartialEq, Debug)]
enum Start {
    Linux(hystart::Start),
    Plus(hystart_pp::Start),
}

base::packed!(Start: Linux(start) | Plus(start));

impl Start {
    /// What a configuration asks for, in the memory of a former one.
    fn of(former: Option<Box<Self>>, config: &Config) -> Option<Box<Self>> {
        let fresh = match config.hystart() {
            Hystart::Off => return None,
            Hystart::Linux => Self::Linux(hystart::Start::new(config.is_paced())),
            Hystart::Plus => Self::Plus(hystart_pp::Start::new(config.is_paced())),
        };
        Some(renewed(former, fresh))
    }
}

/// The controller of a connection and what ends its slow start.
#[derive(Clone, PartialEq, Debug)]
pub struct Chosen {
    algorithm: Algorithm,
    start: Option<Box<Start>>,
}

base::packed!(Chosen { algorithm, start });

impl Chosen {
    /// A new controller, and what ends its slow start, as configured.
    pub fn new(config: &Config) -> Self {
        Self { algorithm: Algorithm::new(config), start: Start::of(None, config) }
    }

    /// One without memory of its own, to stand where another is taken away.
    pub fn placeholder() -> Self {
        Self { algorithm: Algorithm::Reno(Reno::default()), start: None }
    }

    /// Becomes what [`Chosen::new`] makes, in the memory that it has.
    pub fn renew(&mut self, config: &Config) {
        self.algorithm.renew(config);
        self.start = Start::of(self.start.take(), config);
    }

    /// The controller.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The controller, for what concerns it alone.
    pub(crate) fn algorithm_mut(&mut self) -> &mut Algorithm {
        &mut self.algorithm
    }

    /// Whether it wants to be told what is delivered.
    #[inline]
    pub fn watches(&self) -> bool {
        self.start.is_some() || self.algorithm.watches()
    }

    /// Whether one of them wants to hear also of segments that report nothing delivered. Linux's HyStart looks at round
    /// trips alone.
    #[inline]
    pub fn heeds_silence(&self) -> bool {
        self.algorithm.heeds_silence() || self.start.as_ref().is_some_and(|start| matches!(**start, Start::Plus(_)))
    }

    /// Tells both what an acknowledgement says of what arrived ([`Controller::delivered`]).
    pub fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        self.algorithm.delivered(window, delivery);
        if let Some(start) = &mut self.start {
            match &mut **start {
                Start::Linux(start) => start.delivered(window, delivery),
                Start::Plus(start) => start.delivered(window, delivery),
            }
        }
        if !window.in_slow_start() {
            self.end_first_start();
        }
    }

    /// Lets the window grow, by whichever of the two is in charge ([`Controller::grow`]).
    #[inline]
    pub fn grow(&mut self, window: &mut Window, acked: &Acked) {
        if let Some(start) = &mut self.start
            && let Start::Plus(start) = &mut **start
            && window.in_slow_start()
        {
            return start.grow(window, acked);
        }
        self.algorithm.grow(window, acked);
    }

    /// Tells both of congestion. Returns what is left of the window ([`Controller::reduced`]).
    pub fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        self.end_first_start();
        self.algorithm.reduced(window, congestion)
    }

    /// Ends HyStart++, which is for the first slow start alone (RFC 9406 §4.3).
    fn end_first_start(&mut self) {
        self.start.take_if(|start| matches!(**start, Start::Plus(_)));
    }

    /// Tells both that the timer expired ([`Controller::timed_out`]).
    pub fn timed_out(&mut self) {
        if let Some(start) = &mut self.start
            && let Start::Linux(start) = &mut **start
        {
            start.restart();
        }
        self.algorithm.timed_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Span, Time};

    #[test]
    fn hystart_plus_plus_is_for_the_first_slow_start() {
        let profile = crate::stack::profile("linux").expect("a profile");
        let config = Config { hystart: Hystart::Plus, ..(profile.config)() };
        let mut chosen = Chosen::new(&config);
        let mss = f64::from(config.mss);
        let rtt = Some(Span::from_ms(80));
        let now = Time::from_ns(1_000_000_000);
        let delivery = Delivery { bytes: 1_448, marked: 0, una: 1, nxt: 2, rtt, one_way: None, mss, now };
        let mut window = Window { cwnd: 10.0 * mss, ssthresh: f64::INFINITY };
        chosen.delivered(&mut window, &delivery);
        assert!(chosen.start.is_some());
        // It has ended slow start; then a pause brings the window below the threshold.
        window.ssthresh = window.cwnd;
        chosen.delivered(&mut window, &delivery);
        window.cwnd /= 2.0;
        assert!(window.in_slow_start() && chosen.start.is_none());
    }
}
