//! Who asks for what, when, over which connection: the rules of the hosts' applications, written once for the simulator
//! and for the live test bed.
//!
//! ```text
//!               due, completed, given up              commands
//!   the driver ─────────────────────────> Sources ─────────────> the driver: endpoints, or sockets
//!       ▲                                                              │
//!       └──────────────── the connection on a lane (keep) ─────────────┘
//! ```
//!
//! [`Sources`] are told what happened and append [`Command`]s; the driver carries these out and tells them which
//! connection it opened for whom. What a connection is called is the driver's business. Nothing here reads a clock.
//!
//! The rules:
//!
//! - An exchange is complete when its client has its last byte. It counts from the instant at which it was wanted.
//! - A source of web traffic hears of the end of an exchange: it was completed, or its connection was given up.
//! - Nobody asks again on a connection that its server closes after the response.
//! - What is asked for at instants of its own keeps to them, however late the driver is.
//! - A random arrival that asks for nothing sends: it is a transfer.
//! - What is recorded is what was asked for, by whom and when, but for transfers and recordings ([`Recorder`]).

mod hosts;
mod recorder;
mod sources;

pub use hosts::{hosts, hosts_within};
pub use recorder::Recorder;
pub use scenario::{Command, Opening, Owner, Source};
pub use sources::Sources;
