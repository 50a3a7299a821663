//! Reno: additive increase by one segment a round trip, multiplicative decrease by half.
//!
//! Source: RFC 5681 §3.1.

use super::{Acked, Controller, Window, slow_start};
use base::Time;

/// The controller has no state of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl Controller for Reno {
    #[inline]
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        if window.in_slow_start() {
            return slow_start(window, acked);
        }
        // RFC 5681 (3): SMSS*SMSS/cwnd an acknowledgement; with byte counting, a segment per window of bytes.
        let credit = if acked.byte_counting { acked.bytes as f64 } else { acked.mss };
        window.cwnd += acked.mss * credit / window.cwnd;
    }

    fn reduced(&mut self, _window: &Window, flight: f64, _mss: f64, _now: Time) -> f64 {
        // RFC 5681 (4)
        flight / 2.0
    }
}
