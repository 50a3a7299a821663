//! This crate has endpoints of real-time media over UDP as state machines: a [`Sender`] that encodes frames, cuts them
//! into RTP packets and sends these at the pace of its controller, and a [`Receiver`] that answers with reports of what
//! arrived, when, and how it was marked (RFC 8888).
//!
//! Both say when they next want a call, and a spurious call is harmless. Neither knows TCP, a socket or a clock.

mod encoder;
mod receiver;
mod scream;
mod sender;

pub use encoder::frames_in;
pub use receiver::{Receiver, Report};
pub use scream::{Heard, Mode, Rates, Scream};
pub use sender::{Act, Frame, LEAST_FRAME_BYTES, Packet, Sender, State};

use base::{Rate, Span};

/// IP, UDP and RTP headers of a packet, bytes: 20, 8 and 12 (RFC 3550 §5.1).
pub const HEADER_BYTES: u32 = 40;

/// A source of video and how its rate is controlled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// From one frame to the next.
    pub frame_period: Span,
    /// The least and the greatest rate of its IP packets.
    pub rates: [Rate; 2],
    /// Size of a full packet, bytes (IP).
    pub packet: u32,
    /// From one key frame to the next, and how many times a mean frame's size it has; none without key frames.
    pub key_frames: Option<(Span, f64)>,
    /// Scale of the Laplacian deviation of frame sizes, of their mean.
    pub variation: f64,
    /// How it answers marks.
    pub mode: Mode,
}
