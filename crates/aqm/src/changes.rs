//! A link may change while a run goes on: by a schedule that somebody wrote down, or at random between states.
//!
//! A schedule gives the rate of the link and the delay behind it, each way, from an instant on. It may begin again
//! after a period, and then the link is as it was at the start. A chain is in one of several states. It stays there for
//! a time that is drawn, and goes on to a state that is drawn by weights. With exponential times it is a Markov chain.
//!
//! Both directions change at one instant, so that a hand-over is one event. Each direction has its own [`Changes`].
//! These draw the same chain, as they are given equal streams.
//!
//! A packet in transmission ends at the rate at which it began: a change holds for transmissions that begin after it.
//! During an outage none begins.

use base::{Distribution, Rate, Span, Stream, Time};
use std::iter::Peekable;
use std::sync::Arc;

/// What a link is like, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Its rate.
    pub rate: Rate,
    /// The propagation delay behind it.
    pub delay: Span,
}

/// A change that a schedule has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// How long after the start of the run, or of a period.
    pub after: Span,
    /// What the link is like from then on, forward and in reverse.
    pub conditions: [Condition; 2],
    /// For how long nothing is sent either way.
    pub outage: Span,
}

/// One state of a chain.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// What the link is like in this state, forward and in reverse.
    pub conditions: [Condition; 2],
    /// How long the state lasts, in seconds.
    pub stay: Distribution,
    /// The weight with which each state follows this one.
    pub to: Vec<f64>,
}

/// How a link changes.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// The link changes as it was written down.
    Schedule {
        /// What the link is like at the start of a period, forward and in reverse.
        start: [Condition; 2],
        /// What changes, in the order of time; all before the end of a period.
        moments: Vec<Moment>,
        /// After what time the schedule begins again; `None` if it does not.
        period: Option<Span>,
    },
    /// The link changes at random. It is in the first state at the start.
    Chain(Vec<State>),
}

/// A change of a link, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// When it comes.
    pub at: Time,
    /// What the link is like from then on.
    pub condition: Condition,
    /// When the link sends again: at once, or after an outage.
    pub resumes_at: Time,
}

/// A state lasts at least so long, whatever is drawn, so that time moves on.
const SHORTEST_STAY: Span = Span::from_us(1);

/// The changes of a link, one way, one after the other.
#[derive(Clone, Debug)]
pub struct Changes {
    pattern: Arc<Pattern>,
    side: usize,
    /// The stream that a chain draws from.
    stream: Stream,
    /// The next moment of a schedule, where 0 is the start of a period; or the present state of a chain.
    place: usize,
    /// When the present period began, or the present state.
    since: Time,
}

impl Changes {
    /// The changes of direction `side`, 0 forward. The directions of a link are given equal streams, and change
    /// together.
    pub fn new(pattern: Arc<Pattern>, side: usize, stream: Stream) -> Self {
        // The start of the first period is the link's own, and no change.
        let place = usize::from(matches!(*pattern, Pattern::Schedule { .. }));
        Self { pattern, side, stream, place, since: Time::ZERO }
    }
}

impl Iterator for Changes {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        let side = self.side;
        match &*self.pattern {
            Pattern::Schedule { start, moments, period } => {
                if self.place > moments.len() {
                    self.since += (*period)?;
                    self.place = 0;
                }
                let place = self.place;
                self.place += 1;
                let Some(moment) = place.checked_sub(1) else {
                    let at = self.since;
                    return Some(Change { at, condition: start[side], resumes_at: at });
                };
                let Moment { after, conditions, outage } = moments[moment];
                let at = self.since + after;
                Some(Change { at, condition: conditions[side], resumes_at: at + outage })
            }
            Pattern::Chain(states) => {
                let state = &states[self.place];
                let stay = Span::from_secs_f64(state.stay.draw(&mut self.stream)).max(SHORTEST_STAY);
                let mut left = self.stream.unit() * state.to.iter().sum::<f64>();
                let follows = state.to.iter().position(|weight| {
                    left -= weight;
                    left < 0.0
                });
                // What rounding leaves over is the last state's that may follow.
                let last = || state.to.iter().rposition(|weight| *weight > 0.0).unwrap_or_default();
                self.place = follows.unwrap_or_else(last);
                self.since += stay;
                let condition = states[self.place].conditions[side];
                Some(Change { at: self.since, condition, resumes_at: self.since })
            }
        }
    }
}

/// The mean rate at which a link could have sent between two instants, in bits a second. `first` is what the link is
/// like at the start of the run.
pub fn mean_bps(first: Condition, changes: Changes, from: Time, to: Time) -> f64 {
    let mut sendable = Sendable::new(first, changes);
    sendable.bits_until(from);
    sendable.bits_until(to) / to.since(from).secs_f64()
}

/// How much a link can send, a stretch of time after the other.
#[derive(Clone, Debug)]
pub struct Sendable {
    rate: Rate,
    /// From when on the link sends at this rate and was not asked about.
    since: Time,
    changes: Peekable<Changes>,
}

impl Sendable {
    /// Of a link that is like this at the start of the run, and then changes.
    pub fn new(first: Condition, changes: Changes) -> Self {
        Self { rate: first.rate, since: Time::ZERO, changes: changes.peekable() }
    }

    /// How many bits it can send from the instant that was asked for last, or the start, to this one.
    pub fn bits_until(&mut self, to: Time) -> f64 {
        let mut bits = 0.0;
        while let Some(change) = self.changes.next_if(|change| change.at < to) {
            bits += self.sent(change.at);
            (self.rate, self.since) = (change.condition.rate, self.since.max(change.resumes_at));
        }
        bits + self.sent(to)
    }

    fn sent(&mut self, until: Time) -> f64 {
        let bits = self.rate.bps_f64() * until.since(self.since).secs_f64();
        self.since = self.since.max(until);
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(rate: u64) -> Condition {
        Condition { rate: Rate::from_bps(rate * 1_000_000), delay: Span::ZERO }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn moment(ms: u64, rate: u64, outage: u64) -> Moment {
        Moment { after: Span::from_ms(ms), conditions: [mbps(rate), mbps(1)], outage: Span::from_ms(outage) }
    }

    fn schedule(moments: &[Moment], period: Option<u64>) -> Changes {
        let start = [mbps(10), mbps(1)];
        let pattern = Pattern::Schedule { start, moments: moments.to_vec(), period: period.map(Span::from_ms) };
        Changes::new(Arc::new(pattern), 0, Stream::named(1, "changes"))
    }

    #[test]
    fn a_schedule_ends_or_begins_again_as_it_was_at_the_start() {
        let moments = [moment(10, 5, 0), moment(20, 2, 3)];
        let told = |changes: Changes| -> Vec<(u64, u64, u64)> {
            let of =
                |c: Change| (c.at.ns() / 1_000_000, c.condition.rate.bps() / 1_000_000, c.resumes_at.ns() / 1_000_000);
            changes.take(5).map(of).collect()
        };
        assert_eq!(told(schedule(&moments, None)), [(10, 5, 10), (20, 2, 23)]);
        let again = [(10, 5, 10), (20, 2, 23), (30, 10, 30), (40, 5, 40), (50, 2, 53)];
        assert_eq!(told(schedule(&moments, Some(30))), again);
    }

    #[test]
    fn the_mean_of_a_link_counts_no_outage() {
        let changes = || schedule(&[moment(10, 5, 0), moment(20, 2, 3)], Some(30));
        // 10 ms at 10 Mb/s, 10 at 5, 3 at none, 7 at 2.
        let round = (10.0 * 10.0 + 10.0 * 5.0 + 7.0 * 2.0) / 30.0;
        let mean = |from, to| mean_bps(mbps(10), changes(), at(from), at(to)) / 1e6;
        assert!((mean(0, 30) - round).abs() < 1e-9 && (mean(30, 300) - round).abs() < 1e-9);
        assert!((mean(5, 15) - 7.5).abs() < 1e-9 && mean(20, 23).abs() < 1e-9);
    }

    #[test]
    fn what_a_link_can_send_is_told_a_stretch_after_the_other() {
        let changes = schedule(&[moment(10, 5, 0), moment(20, 2, 3)], Some(30));
        let mut sendable = Sendable::new(mbps(10), changes);
        // In kilobits: 5 ms at 10 Mb/s; 5 more and 5 at 5; 5 at 5 and 2 of an outage of 3; its last, and 4 at 2;
        // nothing.
        for (ms, kilobits) in [(5, 50.0), (15, 75.0), (22, 25.0), (27, 8.0), (27, 0.0)] {
            let found = sendable.bits_until(at(ms)) / 1e3;
            assert!((found - kilobits).abs() < 1e-9, "{found} until {ms} ms");
        }
    }

    /// Of a chain of two states the share of time in each is that of their mean stays.
    #[test]
    fn a_chain_is_in_a_state_as_long_as_it_stays() {
        let state = |rate, mean, to: [f64; 2]| State {
            conditions: [mbps(rate), mbps(rate)],
            stay: Distribution::Exponential { mean },
            to: to.to_vec(),
        };
        let pattern = Arc::new(Pattern::Chain(vec![state(8, 0.3, [0.0, 1.0]), state(2, 0.1, [1.0, 0.0])]));
        let changes = |side| Changes::new(pattern.clone(), side, Stream::named(3, "changes"));
        let end = Time::ZERO + Span::from_secs(4000);
        // 10,000 rounds of mean 0.4 s: the share of the first state has a standard deviation of
        // sqrt(2) x 0.75 x 0.25 / 100 = 0.0027; of the rate, 6 times that.
        let mean = mean_bps(mbps(8), changes(0), Time::ZERO, end) / 1e6;
        assert!((mean - 6.5).abs() < 4.0 * 6.0 * 0.0027, "{mean}");
        let times = |side| changes(side).take(100).map(|change| change.at).collect::<Vec<_>>();
        assert_eq!(times(0), times(1), "both directions change together");
        assert!(times(0).is_sorted_by(|a, b| a < b));
    }
}
