//! Congestion controllers say how the window moves. Each is a file, over the shared frame of [`crate::endpoint`], and a
//! line in `registry.rs`. Any of them can be combined with what ends slow start early (`chosen.rs`).

pub mod bbr;
pub mod bbr3;
mod chosen;
pub mod cubic;
pub mod cubic_linux;
pub mod dctcp;
pub mod hystart;
pub mod hystart_pp;
pub mod ledbat;
pub mod prague;
pub mod prague_linux;
mod registry;
pub mod reno;
pub mod windowed;

pub use chosen::{Chosen, Hystart};
pub use cubic::CubicDialect;
pub use registry::{Algorithm, Control};

use crate::stack::Config;
use base::{Span, Time};

/// The most bytes of a paced burst in Linux: GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER and one.
pub(crate) const MOST_BURST: u64 = 65_536 - 1 - 320;
/// Paced bursts a second in Linux: 2 to the power of `sk_pacing_shift`, which is 10.
pub(crate) const BURSTS: f64 = 1_024.0;

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow-start threshold.
    pub ssthresh: f64,
}

base::packed!(Window { cwnd, ssthresh });

impl Window {
    /// Whether the sender is in slow start.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The congestion window in whole bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        // The conversion to a signed number is one instruction.
        self.cwnd as i64 as u64
    }
}

/// What an acknowledgement of new data says to a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
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

/// What an acknowledgement of any kind says about data that arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delivery {
    /// Bytes newly acknowledged or newly reported.
    pub bytes: u64,
    /// Bytes of these that were marked, as far as it is told. Control packets may be marked beside them.
    pub marked: u64,
    /// Oldest sequence number not acknowledged now.
    pub una: u64,
    /// Next sequence number never sent.
    pub nxt: u64,
    /// The round trip of the newest data acknowledged, if it is known.
    pub rtt: Option<Span>,
    /// How long data took to the other end by the clocks of both, which may differ by any amount; whole milliseconds.
    /// None without timestamps.
    pub one_way: Option<Span>,
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
    /// A segment was lost, and a probe for the tail has repaired it where the window comes down gradually. To Linux
    /// that is a reduction without a recovery (tcp_process_tlp_ack).
    Probed,
    /// A segment was marked.
    Mark,
}

/// Congestion, as the sender heard of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Congestion {
    /// What told of it.
    pub cause: Cause,
    /// Bytes that were outstanding then.
    pub flight: f64,
    /// Payload of a full segment.
    pub mss: f64,
    /// Whether what is left is to be whole segments.
    pub whole_segments: bool,
    /// Whether a mark is to be answered by less than a loss is (RFC 8511), in slow start as in congestion avoidance:
    /// whether the RFC means both is open to reading.
    pub abe: bool,
    /// Now.
    pub now: Time,
}

impl Congestion {
    /// The share of the window that is left: `loss`, or `mark` where marks are answered by less.
    fn keeps(&self, loss: f64, mark: f64) -> f64 {
        if self.abe && self.cause == Cause::Mark { mark } else { loss }
    }

    /// `bytes`, rounded down to whole segments where the window has only such.
    fn down(&self, bytes: f64) -> f64 {
        if self.whole_segments { (bytes / self.mss).floor() * self.mss } else { bytes }
    }

    /// `bytes`, rounded up to whole segments where the window has only such.
    fn up(&self, bytes: f64) -> f64 {
        if self.whole_segments { (bytes / self.mss).ceil() * self.mss } else { bytes }
    }
}

/// The stage of loss recovery, as a controller that models the path sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Nothing is being repaired.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Timeout,
}

/// How fast data was delivered between two acknowledgements (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delivered {
    /// Segments delivered in the interval.
    pub segments: u64,
    /// The longer of the time it took to send them and the time it took to hear of them.
    pub interval: Span,
    /// Segments delivered in all when the newest of these was sent.
    pub prior: u64,
    /// Whether the application, not the network, set the pace at some time in it.
    pub is_app_limited: bool,
    /// Segments in the network when the newest of these was sent, itself among them.
    pub in_flight: u64,
    /// Segments deemed lost since then.
    pub lost: u64,
    /// Segments told to be marked since then, where marks are counted.
    pub marked: u64,
}

/// A segment that was deemed lost, as a controller hears of it that models the path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lost {
    /// Its first sequence number.
    pub seq: u64,
    /// One past its last sequence number.
    pub end: u64,
    /// Segments in the network when it was last sent, itself among them.
    pub in_flight: u64,
    /// Segments deemed lost since then, itself among them.
    pub lost: u64,
    /// Whether the application set the pace when it was sent.
    pub is_app_limited: bool,
    /// Segments delivered in all.
    pub delivered: u64,
    /// Payload of a full segment.
    pub mss: f64,
    /// Now.
    pub now: Time,
}

/// What an acknowledgement tells a controller that models the path. Counts are of segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Newly acknowledged or reported.
    pub newly_delivered: u64,
    /// Newly deemed lost.
    pub newly_lost: u64,
    /// Newly told to be marked, where marks are counted (RFC 9768).
    pub marked: Option<u64>,
    /// Delivered in all.
    pub delivered: u64,
    /// Deemed lost in all.
    pub lost: u64,
    /// When something was last delivered.
    pub delivered_at: Time,
    /// In the network before this acknowledgement.
    pub prior_in_flight: u64,
    /// In the network now.
    pub in_flight: u64,
    /// The rate of delivery, if that could be measured.
    pub rate: Option<Delivered>,
    /// How long the newest of what was delivered took, if it was sent once.
    pub rtt: Option<Span>,
    /// Whether the receiver may have waited before it acknowledged.
    pub may_be_delayed: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Span>,
    /// When the next segment may leave.
    pub departs_at: Time,
    /// Loss recovery.
    pub stage: Stage,
    /// Payload of a full segment.
    pub mss: f64,
    /// Now.
    pub now: Time,
}

/// What an acknowledgement tells a controller that sets window and rate by itself, and needs no rate of delivery.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Told {
    /// Bytes newly acknowledged or newly reported.
    pub bytes: u64,
    /// Bytes of these that were marked, where marks are counted (RFC 9768).
    pub marked: Option<u64>,
    /// Oldest sequence number not acknowledged now.
    pub una: u64,
    /// Next sequence number never sent.
    pub nxt: u64,
    /// Bytes in the network: outstanding, neither reported nor deemed lost.
    pub in_flight: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Span>,
    /// Whether the window limits the sender, and not the application.
    pub is_window_used: bool,
    /// Loss recovery.
    pub stage: Stage,
    /// Payload of a full segment.
    pub mss: f64,
    /// Now.
    pub now: Time,
}

/// What a controller that models the path asks of the frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Steer {
    /// The rate to send at, payload bytes a second.
    pub bytes_per_second: f64,
    /// The least number of segments to send at once.
    pub least_burst: u64,
    /// How many bursts a second there are at this rate, if not as many as the stack sends by itself.
    pub bursts_per_second: Option<f64>,
    /// Whether the sender, not the network, limits what is in the network now.
    pub hides_rate: bool,
}

/// A congestion controller: it is told what happens, and sets the window.
pub trait Controller {
    /// Whether it sets window and rate by itself with every acknowledgement, most by a model of the path: neither
    /// growth nor a gradual reduction is asked for then, and what is sent is paced.
    const MODELS_PATH: bool = false;
    /// Whether its receiver echoes each mark, its sender tells marks and losses apart (RFC 8257).
    const ECHOES_EACH_MARK: bool = false;
    /// Whether one that sets window and rate by itself wants the rate of delivery ([`Controller::sampled`]). Otherwise
    /// it is [told](Controller::told) less.
    const SAMPLES_RATE: bool = Self::MODELS_PATH;
    /// Whether how it starts is its own, so that nothing else ends its slow start.
    const STARTS_ITSELF: bool = Self::MODELS_PATH;
    /// Whether it needs counts of marks (RFC 9768). Without these, what it sends is ECT(0).
    const NEEDS_COUNTS: bool = false;

    /// A new controller for a connection with this configuration.
    fn new(config: &Config) -> Self;

    /// Becomes a new controller for another connection, in the memory that it has.
    fn renew(&mut self, config: &Config)
    where
        Self: Sized,
    {
        *self = Self::new(config);
    }

    /// Whether it wants to be told what is delivered.
    fn watches(&self) -> bool {
        false
    }

    /// Whether it wants to hear also of segments that report nothing delivered ([`Controller::delivered`]).
    fn heeds_silence(&self) -> bool {
        self.watches()
    }

    /// Takes an acknowledgement of any kind. The frame calls this for each, before the other methods.
    fn delivered(&mut self, _window: &mut Window, _delivery: &Delivery) {}

    /// Lets the window grow when new data is acknowledged outside loss recovery.
    fn grow(&mut self, _window: &mut Window, _acked: &Acked) {}

    /// Whether it leaves a mark that is heard of now without any answer, since it answered one a moment ago.
    fn passes_over_marks(&self, _now: Time) -> bool {
        false
    }

    /// Answers congestion: returns how many bytes may be outstanding from now on, before any lower bound.
    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64;

    /// Learns that the retransmission timer expired.
    fn timed_out(&mut self) {}

    /// Learns that the last reduction was needless and was taken back. The frame restores the window, unless this
    /// models the path.
    fn undone(&mut self, _window: &mut Window) {}

    /// Learns that the handshake took `rtt`, if it models the path.
    fn opened(&mut self, _window: &Window, _mss: f64, _rtt: Span, _now: Time) {}

    /// Learns that a segment was deemed lost, if it models the path. The frame calls this before
    /// [`Controller::sampled`].
    fn lost(&mut self, _window: &Window, _lost: &Lost) {}

    /// Takes an acknowledgement after loss detection, if it models the path.
    fn sampled(&mut self, _window: &mut Window, _sample: &Sample) {}

    /// Takes an acknowledgement after loss detection, if it sets window and rate by itself without a rate of delivery.
    fn told(&mut self, _window: &mut Window, _told: &Told) {}

    /// Learns that data is about to be sent after the application had nothing to send, if it models the path.
    fn restarted(&mut self, _window: &mut Window, _mss: f64, _now: Time) {}

    /// Learns that something is about to be sent while nothing is outstanding, `pause` after the last was.
    fn resumed(&mut self, _pause: Span, _now: Time) {}

    /// Says how to go on sending, if it models the path.
    fn steer(&self) -> Option<Steer> {
        None
    }
}

impl<C: Controller> Controller for Box<C> {
    const MODELS_PATH: bool = C::MODELS_PATH;
    const ECHOES_EACH_MARK: bool = C::ECHOES_EACH_MARK;
    const SAMPLES_RATE: bool = C::SAMPLES_RATE;
    const STARTS_ITSELF: bool = C::STARTS_ITSELF;
    const NEEDS_COUNTS: bool = C::NEEDS_COUNTS;

    fn new(config: &Config) -> Self {
        Self::new(C::new(config))
    }

    fn renew(&mut self, config: &Config) {
        C::renew(self, config);
    }

    fn watches(&self) -> bool {
        C::watches(self)
    }

    fn heeds_silence(&self) -> bool {
        C::heeds_silence(self)
    }

    fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        C::delivered(self, window, delivery);
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        C::grow(self, window, acked);
    }

    fn passes_over_marks(&self, now: Time) -> bool {
        C::passes_over_marks(self, now)
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        C::reduced(self, window, congestion)
    }

    fn timed_out(&mut self) {
        C::timed_out(self);
    }

    fn undone(&mut self, window: &mut Window) {
        C::undone(self, window);
    }

    fn opened(&mut self, window: &Window, mss: f64, rtt: Span, now: Time) {
        C::opened(self, window, mss, rtt, now);
    }

    fn lost(&mut self, window: &Window, lost: &Lost) {
        C::lost(self, window, lost);
    }

    fn sampled(&mut self, window: &mut Window, sample: &Sample) {
        C::sampled(self, window, sample);
    }

    #[inline(always)]
    fn told(&mut self, window: &mut Window, told: &Told) {
        C::told(self, window, told);
    }

    fn restarted(&mut self, window: &mut Window, mss: f64, now: Time) {
        C::restarted(self, window, mss, now);
    }

    fn resumed(&mut self, pause: Span, now: Time) {
        C::resumed(self, pause, now);
    }

    fn steer(&self) -> Option<Steer> {
        C::steer(self)
    }
}

/// Slow start (RFC 5681 §3.1): a segment an acknowledgement, or the bytes acknowledged where those are counted, but
/// no more than a segment beyond the threshold.
#[inline]
fn slow_start(window: &mut Window, acked: &Acked) {
    // RFC 3465 §2.2: no more than L = 2 segments an acknowledgement.
    let step = if acked.byte_counting { (acked.bytes as f64).min(2.0 * acked.mss) } else { acked.mss };
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

/// Additive increase on whole segments: the window grows by one for each `per_segment` acknowledged (Linux's
/// tcp_cong_avoid_ai).
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
