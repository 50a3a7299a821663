//! This crate is the discrete-event simulator. It drives the network of [`net`], as the live router does, but in
//! virtual time.
//!
//! - [`simulation`] has the loop, and what hosts do when a segment arrives.
//! - [`queue`] gives pending events out in their total order.
//! - [`network`] is everything between hosts, with the packets and the events of a run.
//! - [`connection`] and [`packets`] are slabs, so that nothing is allocated per packet.
//! - [`fetching`] lets what they hold be in the cache when it is needed.
//! - [`asking`] does what the sources of demand ([`session`]) want done; [`datagrams`] has the unresponsive ones.
//! - [`probes`] measures single packets; [`watching`] looks at connections now and then.
//! - [`mod@memory`] estimates, before a run, the memory that it will need.
//! - [`mod@run`] makes a whole run, with its warm-up, its rows and its summary.
//! - [`glance`] is what somebody sees who looks at a run while it goes on.
//! - [`stepping`] lets somebody look into a run and steer it while it goes on.
//!
//! A run is a function of its scenario: the same scenario gives the same bytes on any machine.

mod asking;
mod calendar;
mod connection;
mod datagrams;
mod fetching;
mod glance;
mod media;
mod memory;
mod network;
mod packets;
mod parking;
mod probes;
mod queue;
mod row;
mod run;
mod simulation;
mod stepping;
mod tmix;
mod totals;
mod watching;

pub use glance::{Glance, PortGlance};
pub use memory::{Need, memory};
pub use run::{Listener, Outcome, Pulse, run};
pub use simulation::Simulation;
pub use stepping::Observation;
