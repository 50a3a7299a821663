//! Congestion controllers: how the window moves. One file each, over the shared frame of [`crate::endpoint`].

pub mod cubic;
pub mod cubic_linux;
pub mod dctcp;
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
    /// Whether the window is a whole number of segments.
    pub whole_segments: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Span>,
    /// Now.
    pub now: Time,
}

/// What an acknowledgement of any kind says of what arrived.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Bytes newly acknowledged or newly reported.
    pub bytes: u64,
    /// Whether it echoes a mark.
    pub is_marked: bool,
    /// Oldest sequence number not acknowledged now.
    pub una: u64,
    /// Next sequence number never sent.
    pub nxt: u64,
    /// How long the newest of what was acknowledged took, if that is known.
    pub rtt: Option<Span>,
    /// Payload of a full segment.
    pub mss: f64,
    /// Now.
    pub now: Time,
}

/// What tells of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A segment was lost.
    Loss,
    /// A segment was marked.
    Mark,
}

/// Congestion, as the sender heard of it.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// How.
    pub cause: Cause,
    /// Bytes it met.
    pub flight: f64,
    /// Payload of a full segment.
    pub mss: f64,
    /// Whether what is left is to be whole segments.
    pub whole_segments: bool,
    /// Now.
    pub now: Time,
}

impl Congestion {
    /// `bytes`, or the whole segments in it where there are no others.
    fn down(&self, bytes: f64) -> f64 {
        if self.whole_segments { (bytes / self.mss).floor() * self.mss } else { bytes }
    }

    /// `bytes`, or as many whole segments as hold it.
    fn up(&self, bytes: f64) -> f64 {
        if self.whole_segments { (bytes / self.mss).ceil() * self.mss } else { bytes }
    }
}

/// A controller.
pub trait Controller {
    /// An acknowledgement came, of whatever it may be; said of every one, before the others.
    fn delivered(&mut self, _window: &mut Window, _delivery: &Delivery) {}

    /// New data was acknowledged outside loss recovery: grow the window.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// There was congestion: how many bytes may be outstanding from now on, before any lower bound.
    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64;

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
    /// See [`cubic_linux`].
    CubicLinux(Box<cubic_linux::CubicLinux>),
    /// See [`dctcp`].
    Dctcp(dctcp::Dctcp),
}

impl Chosen {
    /// A fresh controller of the kind that is configured.
    pub fn new(config: &stack::Config) -> Self {
        match config.control {
            stack::Control::Reno => Self::Reno(reno::Reno::default()),
            stack::Control::Cubic if config.whole_segments => Self::CubicLinux(Box::default()),
            stack::Control::Cubic => Self::Cubic(cubic::Cubic::default()),
            stack::Control::Dctcp => Self::Dctcp(dctcp::Dctcp::default()),
        }
    }
}

impl Chosen {
    /// Whether it wants to be told what is delivered.
    #[inline]
    pub fn watches(&self) -> bool {
        matches!(self, Self::CubicLinux(_) | Self::Dctcp(_))
    }
}

impl Controller for Chosen {
    fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        match self {
            Self::Reno(_) | Self::Cubic(_) => {}
            Self::CubicLinux(cubic) => cubic.delivered(window, delivery),
            Self::Dctcp(dctcp) => dctcp.delivered(window, delivery),
        }
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        match self {
            Self::Reno(reno) => reno.grow(window, acked),
            Self::Cubic(cubic) => cubic.grow(window, acked),
            Self::CubicLinux(cubic) => cubic.grow(window, acked),
            Self::Dctcp(dctcp) => dctcp.grow(window, acked),
        }
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        match self {
            Self::Reno(reno) => reno.reduced(window, congestion),
            Self::Cubic(cubic) => cubic.reduced(window, congestion),
            Self::CubicLinux(cubic) => cubic.reduced(window, congestion),
            Self::Dctcp(dctcp) => dctcp.reduced(window, congestion),
        }
    }

    fn timed_out(&mut self) {
        match self {
            Self::Reno(reno) => reno.timed_out(),
            Self::Cubic(cubic) => cubic.timed_out(),
            Self::CubicLinux(cubic) => cubic.timed_out(),
            Self::Dctcp(dctcp) => dctcp.timed_out(),
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

/// Slow start on whole segments: by what was acknowledged, up to the threshold. Returns how many of the segments
/// acknowledged are left for congestion avoidance (Linux's tcp_slow_start).
#[inline]
fn slow_start_whole(window: &mut Window, acked: &Acked) -> f64 {
    let bytes = acked.bytes as f64;
    let step = bytes.min((window.ssthresh - window.cwnd).max(0.0));
    window.cwnd += step;
    (bytes - step) / acked.mss
}

/// Additive increase on whole segments: one for each `per_segment` acknowledged (Linux's tcp_cong_avoid_ai).
#[inline]
fn increase(window: &mut Window, counted: &mut f64, per_segment: f64, segments: f64, mss: f64) {
    if *counted >= per_segment {
        *counted = 0.0;
        window.cwnd += mss;
    }
    *counted += segments;
    if *counted >= per_segment {
        let more = (*counted / per_segment).floor();
        *counted -= more * per_segment;
        window.cwnd += more * mss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold() {
        // However much one acknowledgement covers, and to within a segment.
        let acked = Acked {
            bytes: 20_000,
            mss: 1_000.0,
            byte_counting: true,
            whole_segments: false,
            srtt: None,
            now: Time::ZERO,
        };
        for (cwnd, grown) in [(8_000.0, 10_000.0), (9_500.0, 10_500.0)] {
            let mut window = Window { cwnd, ssthresh: 10_000.0 };
            slow_start(&mut window, &acked);
            assert_eq!(window.cwnd, grown);
        }
    }
}
