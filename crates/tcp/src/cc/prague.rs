//! Prague is the scalable congestion control for L4S: DCTCP's answer to marks, made fit for the Internet.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control §2.4; where it leaves a number open, TCP Prague for Linux.
//! It needs accurate feedback (RFC 9768). Without it, a connection does what Reno does, and says ECT(0).
//!
//! | draft                | here                       |
//! |----------------------|----------------------------|
//! | `alpha`, `g`         | `alpha`, [`GAIN`]          |
//! | `RTT_virt`           | [`Prague::virtual_rtt`]: the round trip, at least [`LEAST_RTT`] |
//! | `AI_PER_RTT`         | [`Prague::scale`]          |
//! | transition, `D`      | [`TRANSITION`]             |
//!
//! - **Increase**: what arrives unmarked lets the window grow, also while a reduction goes on; by a segment a round
//!   trip if nothing is marked.
//! - **Decrease**: by half of `alpha`, once a round trip. `alpha` follows the share of marks from the first mark on.
//! - **Short round trips**, below 25 ms: 500 rounds after slow start, a flow grows as if its round trip were that long,
//!   and `alpha` and the window change once in such a time. Flows of all these round trips then have nearly the same
//!   rate, if single segments are paced: with bursts of more a queue is marked before it has formed, and then longer
//!   round trips gain.
//! - **Pacing**: at window over round trip, twice that in slow start, in bursts of a quarter of a millisecond. That is
//!   a single segment up to 98 Mb/s, as in TCP Prague 0.7, where 0.6 sends two at least.
//!
//! # Deviations
//! - A loss halves the window at once. There is no detection of a classic bottleneck: the draft has none that is
//!   complete, and TCP Prague has it switched off.
//! - The window is at least two segments, as in Linux.

use super::{Cause, Congestion, Controller, Stage, Steer, Told, Window};
use crate::stack::Config;
use base::{Span, Time};

/// Weight of the last round in the estimate.
const GAIN: f64 = 1.0 / 16.0;
/// Flows with shorter round trips come to behave as if theirs were this long.
const LEAST_RTT: Span = Span::from_ms(25);
/// After so many rounds since slow start they do.
const TRANSITION: u32 = 500;
/// The smallest window, segments.
const LEAST_WINDOW: f64 = 2.0;
/// Bursts a second: 2 to the power of `prague_burst_shift`, which is 12; and the fewest segments of one.
const BURSTS: f64 = 4_096.0;
const LEAST_BURST: u64 = 1;

/// The state of Prague.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prague {
    /// The window, of which the frame has whole segments; none if that is to be taken from the frame.
    cwnd: Option<f64>,
    /// Estimate of the share of data that is marked.
    alpha: f64,
    /// Something was marked: there is a queue that marks, and the estimate follows it.
    has_seen_mark: bool,
    /// Feedback is accurate.
    is_counted: bool,
    /// Bytes that arrived, and those of them that were marked, since the estimate was brought up to date.
    acked: u64,
    marked: u64,
    /// The round is over when this is acknowledged.
    round_end: u64,
    /// Rounds since slow start.
    rounds: u32,
    /// When the estimate was brought up to date, and when a mark last reduced the window.
    updated_at: Time,
    reduced_at: Option<Time>,
    srtt: Option<Span>,
    /// The window before the last loss.
    before_loss: f64,
    /// Payload bytes a second.
    rate: f64,
    /// The window of whole segments that was last made of one, where the frame has such.
    whole: f64,
    whole_segments: bool,
}

base::left_whole!(Prague);

impl Prague {
    /// Estimate of the share of data that is marked.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// How often the window and the estimate may change, and in what time the window grows by a segment.
    fn virtual_rtt(&self) -> Span {
        self.srtt.map_or(LEAST_RTT, |srtt| srtt.max(LEAST_RTT))
    }

    fn is_independent(&self) -> bool {
        self.rounds >= TRANSITION && self.is_counted
    }

    /// The share of a segment by which the window grows in a round trip: with the square of the round trip, as its rate
    /// is the window over that.
    fn scale(&self) -> f64 {
        match self.srtt {
            Some(srtt) if self.is_independent() => (srtt.secs_f64() / self.virtual_rtt().secs_f64()).powi(2),
            _ => 1.0,
        }
    }

    /// What becomes of a window of `cwnd` when `bytes` arrived unmarked.
    #[inline]
    fn grown(&self, cwnd: f64, bytes: f64, ssthresh: f64, told: &Told) -> f64 {
        let may_grow = match told.stage {
            Stage::Open => told.is_window_used,
            Stage::Recovery => false,
            Stage::Timeout => cwnd < ssthresh,
        };
        if !may_grow || bytes <= 0.0 {
            return cwnd;
        }
        let start = bytes.min((ssthresh - cwnd).max(0.0));
        let grown = cwnd + start;
        grown + (bytes - start) * told.mss / grown * self.scale()
    }

    /// Ends the round if it is over, and brings the estimate up to date.
    #[inline]
    fn end_round(&mut self, is_slow_start: bool, told: &Told) {
        let is_early = || self.is_independent() && told.now.since(self.updated_at) < self.virtual_rtt();
        if told.una < self.round_end || is_early() {
            return;
        }
        if self.has_seen_mark && self.acked > 0 {
            let share = (self.marked as f64 / self.acked as f64).min(1.0);
            self.alpha += GAIN * (share - self.alpha);
        }
        self.rounds = if is_slow_start { self.rounds } else { self.rounds.saturating_add(1) };
        (self.acked, self.marked, self.round_end, self.updated_at) = (0, 0, told.nxt, told.now);
    }

    /// A window of `cwnd` in whole segments. Mostly it has as many as before, which no division has to tell.
    fn whole_window(&mut self, cwnd: f64, mss: f64) -> f64 {
        // Short of a byte of the segment before, no rounding makes it one less.
        let is_as_before = cwnd <= self.whole && cwnd >= self.whole - mss + 1.0;
        if !is_as_before {
            self.whole = whole(cwnd / mss) * mss;
        }
        self.whole
    }

    #[inline]
    fn set_rate(&mut self, cwnd: f64, ssthresh: f64) {
        let Some(srtt) = self.srtt else { return };
        let ratio = if cwnd < ssthresh / 2.0 { 2.0 } else { 1.0 };
        self.rate = ratio * cwnd / srtt.secs_f64();
    }
}

/// The least whole number that is no less than `count`: without SSE 4.1 `ceil` is a call.
fn whole(count: f64) -> f64 {
    let below = count as i64 as f64;
    if below < count { below + 1.0 } else { below }
}

impl Controller for Prague {
    const MODELS_PATH: bool = true;
    const SAMPLES_RATE: bool = false;
    const NEEDS_COUNTS: bool = true;

    fn new(config: &Config) -> Self {
        Self {
            cwnd: None,
            alpha: 1.0,
            has_seen_mark: false,
            is_counted: false,
            acked: 0,
            marked: 0,
            round_end: 0,
            rounds: 0,
            updated_at: Time::ZERO,
            reduced_at: None,
            srtt: None,
            before_loss: 0.0,
            rate: f64::INFINITY,
            whole: 0.0,
            whole_segments: config.whole_segments,
        }
    }

    fn opened(&mut self, window: &Window, _mss: f64, rtt: Span, now: Time) {
        (self.srtt, self.updated_at) = (Some(rtt), now);
        self.set_rate(window.cwnd, window.ssthresh);
    }

    #[inline(always)]
    fn told(&mut self, window: &mut Window, told: &Told) {
        (self.is_counted, self.srtt) = (told.marked.is_some(), told.srtt);
        let marked = told.marked.unwrap_or(0);
        self.has_seen_mark |= marked > 0;
        let cwnd = self.cwnd.unwrap_or(window.cwnd);
        let unmarked = (told.bytes as i64 - marked as i64) as f64;
        let cwnd = self.grown(cwnd, unmarked, window.ssthresh, told);
        (self.acked, self.marked) = (self.acked + told.bytes, self.marked + marked);
        self.end_round(cwnd < window.ssthresh, told);
        self.cwnd = Some(cwnd);
        window.cwnd = if self.whole_segments { self.whole_window(cwnd, told.mss) } else { cwnd };
        self.set_rate(cwnd, window.ssthresh);
    }

    fn passes_over_marks(&self, now: Time) -> bool {
        self.is_independent() && self.reduced_at.is_some_and(|at| now.since(at) < self.virtual_rtt())
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        let cwnd = self.cwnd.unwrap_or(window.cwnd);
        let left = match congestion.cause {
            Cause::Mark if self.is_counted => {
                self.reduced_at = Some(congestion.now);
                cwnd * (1.0 - self.alpha / 2.0)
            }
            Cause::Mark => cwnd / 2.0,
            Cause::Loss | Cause::Probed => {
                self.before_loss = cwnd;
                cwnd / 2.0
            }
        };
        let left = left.max(LEAST_WINDOW * congestion.mss);
        self.cwnd = Some(left);
        left
    }

    fn timed_out(&mut self) {
        // The frame's window is one segment and what may still be on its way.
        self.cwnd = None;
    }

    fn undone(&mut self, _window: &mut Window) {
        self.cwnd = Some(self.cwnd.unwrap_or(0.0).max(self.before_loss));
    }

    fn steer(&self) -> Option<Steer> {
        Some(Steer {
            bytes_per_second: self.rate,
            least_burst: LEAST_BURST,
            bursts_per_second: Some(BURSTS),
            hides_rate: false,
        })
    }
}
