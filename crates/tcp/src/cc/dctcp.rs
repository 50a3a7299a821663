//! DCTCP lets the window shrink in proportion to the share of marked data, so that light marking costs little and the
//! queue stays short. It grows as Reno does.
//!
//! Source: RFC 8257 §3.3 to §3.5; its receiver, which echoes every mark, is in `endpoint/feedback.rs`.
//!
//! | RFC                  | here           |
//! |----------------------|----------------|
//! | `DCTCP.Alpha`        | `alpha`        |
//! | `g`                  | [`GAIN`]       |
//! | `DCTCP.WindowEnd`    | `window_end`   |
//! | `DCTCP.BytesAcked`   | `acked`        |
//! | `DCTCP.BytesMarked`  | `marked`       |
//!
//! # Deviations
//! - Data that is reported selectively counts when it is reported, not when the hole before it is filled (Linux's
//!   `delivered`).
//! - Linux keeps alpha in 1/1024 and adds the share of marks in whole 1/64 of a window, so that fewer marks than one in
//!   64 segments leave no trace there. Here alpha is a real number, as in the RFC.

use super::{Acked, Cause, Congestion, Controller, Delivery, Window, reno::Reno};
use crate::stack::Config;

/// Weight of the last window in the estimate (§4.2; Linux's `dctcp_shift_g` = 4).
const GAIN: f64 = 1.0 / 16.0;

/// The state of DCTCP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dctcp {
    /// Estimate of the share of data that is marked.
    alpha: f64,
    /// Bytes acknowledged, and those of them that were marked, since the last update.
    acked: u64,
    marked: u64,
    /// The sequence number that has to be acknowledged for the next update.
    window_end: u64,
    /// Whether an acknowledgement of just that is enough (Linux), or it has to be of more (§3.3 step 4).
    ends_early: bool,
    growth: Reno,
}

base::left_whole!(Dctcp);

impl Default for Dctcp {
    fn default() -> Self {
        // §3.3: 1, so that the first mark is answered like a loss.
        Self { alpha: 1.0, acked: 0, marked: 0, window_end: 0, ends_early: false, growth: Reno::default() }
    }
}

impl Dctcp {
    /// Estimate of the share of data that is marked.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Controller for Dctcp {
    const ECHOES_EACH_MARK: bool = true;

    fn new(config: &Config) -> Self {
        Self { ends_early: config.whole_segments, ..Self::default() }
    }

    fn watches(&self) -> bool {
        true
    }

    fn delivered(&mut self, _window: &mut Window, delivery: &Delivery) {
        self.acked += delivery.bytes;
        self.marked += delivery.marked;
        if self.ends_early && self.window_end == 0 {
            // The acknowledgement that opens the connection begins the first one (dctcp_init).
            self.window_end = delivery.nxt;
            return;
        }
        if delivery.una + u64::from(self.ends_early) <= self.window_end {
            return;
        }
        // §3.3 steps 4 to 8, once a window
        let share = if self.acked > 0 { (self.marked as f64 / self.acked as f64).min(1.0) } else { 0.0 };
        self.alpha += GAIN * (share - self.alpha);
        (self.acked, self.marked) = (0, 0);
        self.window_end = delivery.nxt;
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        self.growth.grow(window, acked);
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        // ABE is not for DCTCP (RFC 8511 §1), which has an answer of its own.
        let halved = self.growth.reduced(window, &Congestion { abe: false, ..*congestion });
        match congestion.cause {
            // §3.3 step 9; whole segments are taken off in Linux (dctcp_ssthresh). It halves when a recovery begins or
            // the timer expires, and neither has (dctcp_state).
            Cause::Mark | Cause::Probed => congestion.up(window.cwnd * (1.0 - self.alpha / 2.0)),
            // §3.4: as other TCP does
            Cause::Loss => halved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Window = Window { cwnd: 0.0, ssthresh: 0.0 };

    /// A segment, with ten more outstanding.
    fn delivery(una: u64) -> Delivery {
        Delivery {
            bytes: 1_000,
            marked: 0,
            una,
            nxt: una + 10_000,
            rtt: None,
            one_way: None,
            mss: 1_000.0,
            now: base::Time::ZERO,
        }
    }

    /// A window of ten segments, the last `marked` of them marked.
    fn window(dctcp: &mut Dctcp, una: &mut u64, marked: u64) {
        for k in 0..10 {
            *una += 1_000;
            let marked = if k >= 10 - marked { 1_000 } else { 0 };
            dctcp.delivered(&mut { IDLE }, &Delivery { marked, ..delivery(*una) });
        }
    }

    #[test]
    fn alpha_forgets_at_its_gain() {
        // (15/16)^n: 0.5967 after 8 windows without a mark, 0.3561 after 16. The update is due with the first segment
        // beyond a window, which makes windows of eleven out of ten outstanding.
        let mut dctcp = Dctcp::default();
        let mut una = 0;
        let mut updates = 0;
        while updates < 16 {
            una += 1_000;
            let before = dctcp.alpha();
            dctcp.delivered(&mut { IDLE }, &delivery(una));
            updates += u32::from(dctcp.alpha() != before);
            let expected = (15.0_f64 / 16.0).powi(updates as i32);
            assert!((dctcp.alpha() - expected).abs() < 1e-12, "after {updates}: {}", dctcp.alpha());
        }
        assert_eq!(una, 1_000 + 15 * 11_000);
    }

    #[test]
    fn alpha_becomes_the_share_of_marks() {
        let (mut dctcp, mut una) = (Dctcp::default(), 0);
        // The pattern of ten and the window of eleven beat; every window has two to four marks of eleven or so, and the
        // mean of all is three of ten. What is left of the first alpha is (15/16)^272 < 3e-8.
        let mut mean = 0.0;
        for round in 0..400 {
            window(&mut dctcp, &mut una, 3);
            mean += if round >= 290 { dctcp.alpha() / 110.0 } else { 0.0 };
        }
        // 110 rounds of ten are 100 windows of eleven: whole periods of the beat.
        assert!((mean - 0.3).abs() < 0.003, "{mean}");
    }

    #[test]
    fn marks_reduce_by_half_of_alpha_and_losses_by_half() {
        let window = Window { cwnd: 100_000.0, ssthresh: 0.0 };
        let of = |cause| Congestion {
            cause,
            flight: 80_000.0,
            mss: 1_000.0,
            whole_segments: false,
            abe: false,
            now: base::Time::ZERO,
        };
        let mut dctcp = Dctcp { alpha: 0.2, ..Dctcp::default() };
        assert!((dctcp.reduced(&window, &of(Cause::Mark)) - 90_000.0).abs() < 1e-6);
        assert_eq!(dctcp.reduced(&window, &of(Cause::Loss)), 40_000.0);
        assert!((dctcp.reduced(&window, &of(Cause::Probed)) - 90_000.0).abs() < 1e-6);
        assert_eq!(Dctcp::default().reduced(&window, &of(Cause::Mark)), 50_000.0);
        // On whole segments what is taken off is rounded down: 100 x 0.1 / 2 = 5, of 99 it is 4.95.
        let of = |cause, cwnd| Congestion { flight: cwnd, whole_segments: true, ..of(cause) };
        let window = Window { cwnd: 99_000.0, ssthresh: 0.0 };
        let mut dctcp = Dctcp { alpha: 0.1, ..Dctcp::default() };
        assert_eq!(dctcp.reduced(&window, &of(Cause::Mark, 99_000.0)), 95_000.0);
        assert_eq!(dctcp.reduced(&window, &of(Cause::Loss, 99_000.0)), 49_000.0);
    }
}
