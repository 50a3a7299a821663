//! The network between hosts, for every driver: what a packet meets from one host to the other, and in which order.
//!
//! ```text
//! left host ─ access ─ delay ─ [link, forward] ─ delay ─ ... ─ [link, forward] ─ delay ─ access ─ right host
//! left host ─ access ─ delay ─ [link, reverse] ─ ... ─ delay ─ [link, reverse] ─ delay ─ access ─ right host
//! ```
//!
//! A packet of side `s` (0 is left, 1 is right) is serialized onto its connection's access link and takes the
//! connection's propagation delay; there it may be lost or held back. Then it crosses the links of its route, one after
//! the other, each with a propagation delay of its own behind it, and is serialized onto the connection's access link
//! on the other side. Every connection has access links of its own.
//!
//! The delay of a connection is constant, and lies behind its senders, where the studies' delay emulators stood, or all
//! of it on one side ([`DelayAt`]). With one link each way only the sum over a round trip matters.
//!
//! - [`Path`]: a connection's access links and its delay; [`Receivers`]: access links of receivers where none piles up;
//! - [`Net`]: the links, with a [`Port`] each way, the [`Routes`] over them, and who watches ([`Watch`]);
//! - [`Rank`] and [`link_goes_first`]: the order of what happens at one instant; [`Underway`]: packets on their way, in
//!   that order.
//!
//! Everything is generic over the packet, reads no clock and draws nothing: drivers say what time it is.

mod delay;
mod net;
mod order;
mod path;
mod receivers;
mod routes;

pub use delay::Delay;
pub use net::{Net, Watch};
pub use order::{Rank, Towards, Underway, link_goes_first};
pub use path::{AccessLink, DelayAt, Path};
pub use receivers::Receivers;
pub use routes::{Port, Routes, Step};
