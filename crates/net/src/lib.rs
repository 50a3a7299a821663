//! The network between hosts, for every driver: what a packet meets from one host to the other, and in which order.
//!
//! ```text
//! left host ─ access ─ delay ─ [egress forward] ─ access ─ right host
//! left host ─ access ─ [egress reverse] ─ delay ─ access ─ right host
//! ```
//!
//! A packet of side `s` (0 is left, 1 is right) is serialized onto its connection's access link and takes the
//! connection's propagation delay; there it may be lost or held back. It goes through egress `s`, and is serialized
//! onto the connection's access link on the other side. The delay is constant for a connection and lies between the
//! sending host and the bottleneck, where the studies' delay emulators stood; with one bottleneck each way only the sum
//! over a round trip matters. Every connection has access links of its own.
//!
//! - [`Path`]: a connection's access links and its delay; [`Receivers`]: access links of receivers where none piles up;
//! - [`Bottleneck`]: an egress each way, and who watches them ([`Watch`]);
//! - [`Rank`] and [`link_goes_first`]: the order of what happens at one instant; [`Underway`]: packets on their way, in
//!   that order.
//!
//! Everything is generic over the packet, reads no clock and draws nothing: drivers say what time it is.

mod bottleneck;
mod order;
mod path;
mod receivers;

pub use bottleneck::{Bottleneck, Watch};
pub use order::{Rank, Towards, Underway, link_goes_first};
pub use path::{AccessLink, Path};
pub use receivers::Receivers;
