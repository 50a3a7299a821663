//! This crate has the models that traffic is drawn from: web users and sessions, connections at random instants,
//! connection vectors, recordings, constant rates.
//!
//! A model says who asks for how many bytes and when, given when earlier requests were answered. It knows neither
//! packets nor TCP, and keeps no time. A driver, simulated or live, carries the demands out and tells when they are
//! met.
//! Each kind of traffic in `scenario` says how a block of a scenario uses these models.

pub mod cbr;
pub mod datagrams;
pub mod farima;
pub mod feldmann;
pub mod packmime;
pub mod page;
pub mod piecewise;
pub mod quantities;
pub mod replay;
pub mod residual;
pub mod session;
pub mod tmix;
pub mod unc2001;
pub mod video;
pub mod web;

pub use cbr::Cbr;
pub use datagrams::Datagram;
pub use packmime::{PackMime, PackMimeModel};
pub use page::{PageModel, Protocol, Reader};
pub use piecewise::Piecewise;
pub use replay::{Demands, Replay};
pub use residual::Residual;
pub use session::{Pages, Session, SessionModel, Sizes};
pub use video::{Rule, Step, VideoModel, Viewer};
pub use web::{Browser, Command, Exchange, WebModel};

/// The largest response or transfer, bytes. Draws from an endless tail are cut here, so that sums of sizes do not
/// overflow.
pub const MOST_BYTES: u64 = 1 << 50;
