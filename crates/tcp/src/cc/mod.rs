//! Congestion controllers: how the window moves. One file each, over the shared frame of [`crate::endpoint`].

pub mod cubic;
pub mod reno;

use crate::stack;
use base::{Span, Time};

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow-start threshold.
    pub ssthresh: f64,
}

impl Window {
    /// Whether the sender is in slow start.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// What an acknowledgement of new data says to a controller.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// Payload of a full segment.
    pub mss: f64,
    /// Whether growth counts bytes (RFC 3465) instead of acknowledgements.
    pub byte_counting: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Span>,
    /// Now.
    pub now: Time,
}

/// A controller.
pub trait Controller {
    /// New data was acknowledged outside loss recovery: grow the window.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// Congestion met `flight` bytes: how many of them may be outstanding from now on, before any lower bound.
    fn reduced(&mut self, window: &Window, flight: f64, mss: f64, now: Time) -> f64;

    /// The retransmission timer expired.
    fn timed_out(&mut self) {}
}

/// The controller a connection runs.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// See [`reno`].
    Reno(reno::Reno),
    /// See [`cubic`].
    Cubic(cubic::Cubic),
}

impl Chosen {
    /// A fresh controller of this kind.
    pub fn new(kind: stack::Control) -> Self {
        match kind {
            stack::Control::Reno => Self::Reno(reno::Reno),
            stack::Control::Cubic => Self::Cubic(cubic::Cubic::default()),
        }
    }
}

impl Controller for Chosen {
    #[inline]
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        match self {
            Self::Reno(reno) => reno.grow(window, acked),
            Self::Cubic(cubic) => cubic.grow(window, acked),
        }
    }

    fn reduced(&mut self, window: &Window, flight: f64, mss: f64, now: Time) -> f64 {
        match self {
            Self::Reno(reno) => reno.reduced(window, flight, mss, now),
            Self::Cubic(cubic) => cubic.reduced(window, flight, mss, now),
        }
    }

    fn timed_out(&mut self) {
        match self {
            Self::Reno(reno) => reno.timed_out(),
            Self::Cubic(cubic) => cubic.timed_out(),
        }
    }
}

/// Slow start (RFC 5681 §3.1): a segment an acknowledgement, or the bytes acknowledged where those are counted, but
/// no more than a segment beyond the threshold.
#[inline]
fn slow_start(window: &mut Window, acked: &Acked) {
    let step = if acked.byte_counting { acked.bytes as f64 } else { acked.mss };
    window.cwnd += step.min((window.ssthresh - window.cwnd).max(acked.mss));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold() {
        // However much one acknowledgement covers, and to within a segment.
        let acked = Acked { bytes: 20_000, mss: 1_000.0, byte_counting: true, srtt: None, now: Time::ZERO };
        for (cwnd, grown) in [(8_000.0, 10_000.0), (9_500.0, 10_500.0)] {
            let mut window = Window { cwnd, ssthresh: 10_000.0 };
            slow_start(&mut window, &acked);
            assert_eq!(window.cwnd, grown);
        }
    }
}
