//! The live driver: the egress that the simulator drives, between real hosts.
//!
//! ```text
//! left hosts ── TUN ── [ access link, delay, egress forward, access link ] ── TUN ── right hosts
//!                      [ access link, egress, delay, access link: the same in reverse ]
//! ```
//!
//! [`Router`] carries IP packets between two TUN devices ([`Tun`]). What happens to them on the way is [`Network`]'s
//! business, which knows neither sockets nor clocks: it is told when a packet came and says when it is to leave.
//! [`Clock`] waits for these instants, in real time ([`Real`]) or in the virtual time of a kernel that has one
//! ([`Sleeping`]); [`Lateness`] tells how far the packets were from them, and whether that is within the budget.

#![cfg(target_os = "linux")]

pub mod wire;

mod clock;
mod flows;
mod frame;
mod lateness;
mod namespace;
mod network;
mod pool;
mod report;
mod router;
mod tun;

pub use clock::{Clock, Real, Sleeping};
pub use frame::Frame;
pub use lateness::{Budget, Lateness};
pub use namespace::Namespace;
pub use network::{Leaving, Network, Refused};
pub use report::Report;
pub use router::Router;
pub use tun::Tun;
