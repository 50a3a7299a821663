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
//! What is then said over a connection is one of three state machines: [`Exchanges`], a [`Transfer`], or a [`Player`]
//! of a connection vector.
//!
//! ```text
//!               open, bytes that came, closed        bytes to write, close, wake
//!   the driver ─────────────────────────────> an end ───────────────────────────> the driver
//!                        Heard                                  Turn
//! ```
//!
//! The rules:
//!
//! - An exchange is complete when its client has its last byte, a transfer when its receiver has. It counts from the
//!   instant at which it was wanted, and is a row of results ([`Completed`]).
//! - A source of web traffic hears of the end of an exchange: it was completed, or its connection was given up.
//! - Nobody asks again on a connection that its server closes after the response.
//! - Who has nothing more to say closes when it sees the other end close. Where more was to come the connection was cut
//!   off: it has failed, and what it carried is no result.
//! - What is asked for at instants of its own keeps to them, however late the driver is.
//! - A random arrival that asks for nothing sends: it is a transfer.
//! - What is recorded is what was asked for, by whom and when, but for transfers and recordings ([`Recorder`]).

mod exchanges;
mod hosts;
mod player;
mod recorder;
mod sources;
mod transfer;
mod turn;

pub use exchanges::{Asked, Exchanges};
pub use hosts::{host_numbers, hosts, hosts_within};
pub use player::Player;
pub use recorder::Recorder;
pub use scenario::{Command, Opening, Owner, Source};
pub use sources::Sources;
pub use transfer::Transfer;
pub use turn::{ACCEPTOR, Completed, Heard, INITIATOR, Turn, sender};
