//! Reno increases the window by one segment a round trip, and halves it at a loss.
//!
//! Source: RFC 5681 §3.1; for windows of whole segments, Linux's tcp_reno_cong_avoid. With ABE a mark takes a fifth
//! (RFC 8511 §3).

use super::{Acked, Congestion, Controller, Window, increase, slow_start, slow_start_whole};
use crate::stack::Config;

/// What is left of the window after a loss (RFC 5681 (4)), and after a mark with ABE (RFC 8511 §3.1).
const BETA: f64 = 0.5;
const BETA_ECN: f64 = 0.8;

/// The state of Reno.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reno {
    /// Segments acknowledged since the window last grew by one, where it is whole segments.
    counted: f64,
}

base::packed!(Reno { counted });

impl Controller for Reno {
    fn new(_config: &Config) -> Self {
        Self::default()
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        if acked.whole_segments {
            let left = slow_start_whole(window, acked);
            if left > 0.0 {
                increase(window, &mut self.counted, window.cwnd / acked.mss, left, acked.mss);
            }
            return;
        }
        if window.in_slow_start() {
            return slow_start(window, acked);
        }
        // RFC 5681 (3): SMSS*SMSS/cwnd an acknowledgement; with byte counting, a segment per window of bytes.
        let credit = if acked.byte_counting { acked.bytes as f64 } else { acked.mss };
        window.cwnd += acked.mss * credit / window.cwnd;
    }

    fn reduced(&mut self, _window: &Window, congestion: &Congestion) -> f64 {
        self.counted = 0.0;
        congestion.down(congestion.flight * congestion.keeps(BETA, BETA_ECN))
    }
}
