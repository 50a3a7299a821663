//! A thread reads the sums of the other threads and the kernel's counters at both edges of the measured window.

use crate::counters::{Counted, Counters};
use crate::news::TallySums;
use base::{Span, Time};
use scenario::Scenario;
use std::io;

/// Both edges, as far as they have come.
#[derive(Clone, Debug)]
pub struct Edges {
    window: [Time; 2],
    read: [Option<Edge>; 2],
}

/// What was read at one of them.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    /// When it was read.
    pub at: Time,
    /// The threads' sums.
    pub sums: TallySums,
    /// The kernel's counters: left, right.
    pub counted: [Counted; 2],
}

impl Edges {
    /// Edges of which none has come.
    pub fn new(scenario: &Scenario) -> Self {
        let [from, to, _] = scenario.edges();
        Self { window: [from, to], read: [None, None] }
    }

    /// When the next edge is due; never when both have come.
    pub fn next(&self) -> Time {
        let missing = (0..2).find(|&edge| self.read[edge].is_none());
        missing.map_or(Time::NEVER, |edge| self.window[edge])
    }

    /// Reads the edges that are due, or all of them if the run `is_over`.
    ///
    /// # Errors
    /// Where the counters cannot be read.
    pub fn look(
        &mut self,
        now: Time,
        is_over: bool,
        sums: impl Fn() -> TallySums,
        counters: &[Counters; 2],
    ) -> io::Result<()> {
        for edge in 0..2 {
            if self.read[edge].is_none() && (is_over || now >= self.window[edge]) {
                // The sums come first, since rates are worked out of them.
                let sums = sums();
                let counted = [counters[0].read()?, counters[1].read()?];
                self.read[edge] = Some(Edge { at: now, sums, counted });
            }
        }
        Ok(())
    }

    /// Why the edges do not stand for the window: the stretch between them is longer or shorter by more than the share
    /// `most`, which makes rates as wrong. `None` if they do, or if the run was cut short.
    pub fn breaks(&self, ended: Time, most: f64) -> Option<String> {
        let [Some(start), Some(stop)] = &self.read else { return None };
        let [asked, read] = [self.window[1].since(self.window[0]), stop.at.since(start.at)].map(Span::secs_f64);
        let is_off = ended >= self.window[1] && (read - asked).abs() > most * asked;
        is_off.then(|| {
            format!("sums of the measured window are of {read:.3} s, expected {asked:.3} s within {} %", most * 100.0)
        })
    }

    /// What was read at the start and at the end of the window. If nothing was read at the start, the end stands for
    /// it.
    pub fn both(&self) -> (Edge, Edge) {
        let [start, stop] = &self.read;
        let stop = stop.clone().unwrap_or_default();
        (start.clone().unwrap_or_else(|| stop.clone()), stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window from 1 s to 3 s, read at these instants, ms.
    fn read_at(at: [u64; 2]) -> Edges {
        let edge = |ms| Some(Edge { at: Time::ZERO + Span::from_ms(ms), ..Edge::default() });
        Edges { window: [1, 3].map(|s| Time::ZERO + Span::from_secs(s)), read: at.map(edge) }
    }

    #[test]
    fn sums_of_another_stretch_are_told() {
        let ended = Time::ZERO + Span::from_secs(4);
        // 0.5 % of two seconds is 10 ms; late by the same is no error of rates.
        assert_eq!(read_at([1_000, 3_009]).breaks(ended, 0.005), None);
        assert_eq!(read_at([1_200, 3_200]).breaks(ended, 0.005), None);
        let reason = read_at([1_000, 3_500]).breaks(ended, 0.005).expect("a quarter too long");
        assert_eq!(reason, "sums of the measured window are of 2.500 s, expected 2.000 s within 0.5 %");
        assert!(read_at([1_100, 3_000]).breaks(ended, 0.005).is_some(), "too short");
        // Somebody stopped it.
        assert_eq!(read_at([1_000, 2_000]).breaks(Time::ZERO + Span::from_secs(2), 0.005), None);
    }
}
