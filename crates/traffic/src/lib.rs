//! The models that traffic is drawn from: web users and sessions, connections at random instants, connection vectors,
//! recordings, constant rates.
//!
//! Everything here is demand alone: who asks for how many bytes and when, given when earlier requests were answered.
//! Nothing knows of packets or TCP, and nothing keeps time: a driver, simulated or live, carries the demands out and
//! tells when they are met. What a block of a scenario asks of these models its kind of traffic says, in `scenario`.

pub mod cbr;
pub mod datagrams;
pub mod farima;
pub mod feldmann;
pub mod packmime;
pub mod piecewise;
pub mod quantities;
pub mod replay;
pub mod residual;
pub mod session;
pub mod tmix;
pub mod unc2001;
pub mod web;

pub use cbr::Cbr;
pub use datagrams::Datagram;
pub use packmime::{PackMime, PackMimeModel};
pub use piecewise::Piecewise;
pub use replay::{Demands, Replay};
pub use residual::Residual;
pub use session::{Pages, Session, SessionModel, Sizes};
pub use web::{Browser, Command, Exchange, WebModel};

/// The largest response or transfer there is, bytes: a draw from a tail without end stays below it, so that sums of
/// sizes do not overflow.
pub const MOST_BYTES: u64 = 1 << 50;
