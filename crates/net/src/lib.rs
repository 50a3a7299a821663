//! This crate is the network between hosts, for every driver. It says what a packet meets from one host to the other,
//! and what happens first of all that happens at one instant.
//!
//! ```text
//! left host ─ access ─ delay ─ [link, forward] ─ delay ─ ... ─ [link, forward] ─ delay ─ access ─ right host
//! left host ─ access ─ delay ─ [link, reverse] ─ ... ─ delay ─ [link, reverse] ─ delay ─ access ─ right host
//! ```
//!
//! A packet that side `s` sends (0 is left, 1 is right) meets these in order:
//! 1. its connection's access link, where it is serialized;
//! 2. the connection's propagation delay, where it may be lost or held back;
//! 3. the links of its route, each with a propagation delay of its own behind it;
//! 4. the connection's access link on the other side, where it is serialized again.
//!
//! Every connection has access links of its own, unless those of a host share them ([`Hosts`]).
//!
//! The delay of a connection is constant. It lies behind its senders, where the studies' delay emulators stood, all on
//! one side, or behind those who open connections ([`DelayAt`]), where it may come in the ticks of a clock. With one
//! link each way, and without ticks, only its sum over a round trip matters.
//!
//! - [`Path`]: a connection's access links and its delay; [`Hosts`]: those that connections share; [`Receivers`]:
//!   access links of receivers where none piles up;
//! - [`Net`]: the links, with a [`Port`] each way, the [`Routes`] over them, and who watches ([`Watch`]);
//! - [`Rank`] and [`link_goes_first`]: the order of what happens at one instant; [`Underway`]: packets on their way, in
//!   that order.
//!
//! Everything is generic over the packet, and reads no clock: drivers say what time it is. Only the beginnings of the
//! ticks of hosts' clocks are drawn.

mod delay;
mod hosts;
mod net;
mod order;
mod path;
mod receivers;
mod routes;

pub use delay::Delay;
pub use hosts::Hosts;
pub use net::{Net, Watch};
pub use order::{Rank, Towards, Underway, link_goes_first};
pub use path::{AccessLink, DelayAt, Path};
pub use receivers::Receivers;
pub use routes::{Port, Routes, Step};
