//! This crate is active queue management: control laws, the disciplines that hold packets, and the egress of a link.
//!
//! - A [`Law`] decides about one packet from facts: size, ECN field, flow, backlog, sojourn time. It never holds one.
//! - A [`Qdisc`] holds packets and decides their order. [`Fifo`](qdisc::fifo::Fifo) is a queue around any law.
//! - An [`Egress`] is a rate, a discipline and a serializer: the bottleneck that the simulator and the live router
//!   drive.
//!
//! Everything is deterministic: time comes in as an argument, and random numbers come from a named [`base::Stream`]
//! that a law owns since it was made. Nothing here knows that TCP exists.

mod cause;
pub mod changes;
pub mod fault;
pub mod gauge;
pub mod law;
pub mod param;
pub mod qdisc;
pub mod redopt;
pub mod registry;
pub mod replay;
mod row;

mod device;
mod egress;
mod framing;
mod line;
mod packet;
mod server;
mod trace;

pub use cause::{Cause, OwnCause};
pub use egress::{Counts, Delivery, Egress};
pub use fault::Fault;
pub use framing::{Cells, Framing};
pub use law::{Arrival, Departure, Gauges, Law, Verdict};
pub use line::{Due, Line, Standing};
pub use packet::{Ack, Backlog, Driver, Headers, Packet, Tap};
pub use qdisc::{Held, Qdisc, Taken};
pub use trace::Trace;
