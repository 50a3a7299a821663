//! A [`Window`] gives the instants of a run at which something is written down: the edges of the measured window and
//! the ends of intervals. What happens at such an instant still belongs to the stretch that ends there.

use base::{Span, Time};

/// The instants that are still to come.
#[derive(Clone, Debug)]
pub struct Window {
    from: Time,
    to: Time,
    end: Time,
    interval: Span,
    phase: Phase,
    /// When the interval under way ends; a row ends at the edges too, so that rows add up to the window and the run.
    row_at: Time,
    last_row_at: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    WarmUp,
    Measured,
    CoolDown,
    Over,
}

/// One of these instants, and what begins or ends there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The instant.
    pub at: Time,
    /// The measured window begins.
    pub starts: bool,
    /// The measured window ends.
    pub stops: bool,
    /// A row ends.
    pub has_row: bool,
    /// An interval ends.
    pub ends_interval: bool,
}

impl Window {
    /// The instants of a run that measures from `from` to `to` and ends at `end`, with a row each `interval`.
    pub fn new([from, to, end]: [Time; 3], interval: Span) -> Self {
        Self { from, to, end, interval, phase: Phase::WarmUp, row_at: Time::ZERO + interval, last_row_at: Time::ZERO }
    }

    /// When the next instant is; [`Time::NEVER`] when the run is over.
    #[inline]
    pub fn next(&self) -> Time {
        let edge = match self.phase {
            Phase::WarmUp => self.from,
            Phase::Measured => self.to,
            Phase::CoolDown => self.end,
            Phase::Over => return Time::NEVER,
        };
        edge.min(self.row_at).min(self.end)
    }

    /// Passes the next instant, and says what happens there.
    pub fn pass(&mut self) -> Edge {
        let at = self.next();
        let starts = self.phase == Phase::WarmUp && at == self.from;
        let stops = self.phase == Phase::Measured && at == self.to;
        let has_row = at > self.last_row_at;
        let ends_interval = at == self.row_at;
        if starts {
            self.phase = Phase::Measured;
        }
        if stops {
            self.phase = Phase::CoolDown;
        }
        if has_row {
            self.last_row_at = at;
        }
        if ends_interval {
            self.row_at += self.interval;
        }
        if at == self.end && self.phase == Phase::CoolDown {
            self.phase = Phase::Over;
        }
        Edge { at, starts, stops, has_row, ends_interval }
    }

    /// Ends the window and the interval at `now`, for a run that is cut short; `None` if the run has ended before.
    pub fn cut(&mut self, now: Time) -> Option<Edge> {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        if phase == Phase::Measured {
            self.to = now;
        }
        let (stops, has_row) = (phase == Phase::Measured, now > self.last_row_at);
        let edge = Edge { at: now, starts: false, stops, has_row, ends_interval: false };
        (phase != Phase::Over).then_some(edge)
    }

    /// How much of the measured window lies before `now`.
    pub fn measured(&self, now: Time) -> Span {
        now.min(self.to).since(self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a run in ms: warm-up, measured window, cool-down, interval.
    fn window(run: [u64; 4]) -> Window {
        let [warmup, measured, cooldown, interval] = run.map(Span::from_ms);
        let from = Time::ZERO + warmup;
        let to = from + measured;
        Window::new([from, to, to + cooldown], interval)
    }

    /// All instants of a run, in ms: when, and what happens.
    fn edges(run: [u64; 4]) -> Vec<(u64, &'static str)> {
        let mut window = window(run);
        let mut edges = Vec::new();
        while window.next().is_set() {
            let Edge { at, starts, stops, has_row, ends_interval } = window.pass();
            assert_eq!(ends_interval, at > Time::ZERO && at.ns().is_multiple_of(window.interval.ns()));
            let what = match (starts, stops, has_row) {
                (true, false, false) => "starts",
                (true, false, true) => "starts, row",
                (false, true, true) => "stops, row",
                (false, false, true) => "row",
                other => panic!("{other:?}"),
            };
            edges.push((at.ns() / 1_000_000, what));
        }
        edges
    }

    #[test]
    fn a_run_that_is_cut_short_ends_its_window() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut window = window([250, 300, 60, 200]);
        let _ = (window.pass(), window.pass());
        let expected = Edge { at: at(300), starts: false, stops: true, has_row: true, ends_interval: false };
        assert_eq!(window.cut(at(300)), Some(expected));
        assert_eq!((window.measured(at(700)), window.next()), (Span::from_ms(50), Time::NEVER));
        assert_eq!(window.cut(at(301)), None);
    }

    #[test]
    fn a_row_ends_each_interval_and_at_the_edges() {
        assert_eq!(
            edges([250, 300, 60, 200]),
            [(200, "row"), (250, "starts, row"), (400, "row"), (550, "stops, row"), (600, "row"), (610, "row")]
        );
        assert_eq!(edges([0, 400, 0, 200]), [(0, "starts"), (200, "row"), (400, "stops, row")]);
    }
}
