//! The live driver puts [`net`], the network that the simulator drives, between real hosts.
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
//!
//! [`run()`] makes a whole run: the [`Bed`] with network namespaces, devices and settings, the check of the link,
//! router and [`hosts`] as threads of this process, tables, summary. [`child`] is that for a process of its own, which
//! reads its [`Plan`] from a folder and leaves everything there.

#![cfg(target_os = "linux")]

pub mod capture;
pub mod hosts;
pub mod monitor;
pub mod news;
pub mod paths;
pub mod wire;

mod addressing;
mod around;
mod bed;
mod clock;
mod collector;
mod counters;
mod edges;
mod flows;
mod frame;
mod gate;
mod kernel_qdisc;
mod lateness;
mod link_check;
mod machine;
mod namespace;
mod network;
mod outcome;
mod pace;
mod parts;
mod plan;
mod pool;
mod program;
mod progress;
mod report;
mod roles;
mod router;
mod run;
mod settings;
mod traffic_check;
mod tun;
mod urgency;

pub use addressing::{Addressing, BLOCKS, HOSTS};
pub use bed::{Bed, INTERFACE};
pub use capture::{Capture, CaptureReport, Captures, Sides};
pub use clock::{Clock, Epoch, MOST_PORTS, Ready, Real, Sleeping};
pub use counters::{Counted, Counters};
pub use frame::Frame;
pub use kernel_qdisc::{KernelLink, KernelSpec, Passage, Statistics};
pub use lateness::{Budget, Lateness};
pub use namespace::Namespace;
pub use network::{Held, Ingress, Leaving, Network, Refused};
pub use pace::Pace;
pub use plan::{Failure, Outcome, Plan};
pub use progress::Progress;
pub use report::{Direction, Report};
pub use router::Router;
pub use run::{child, run};
pub use settings::{BlockSettings, Settings};
pub use tun::Tun;
pub use urgency::{Class, Urgency, Waited};
