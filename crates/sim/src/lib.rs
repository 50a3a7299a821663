//! The discrete-event simulator: drives the network of [`net`], as the live router does, in virtual time.
//!
//! - [`queue`]: pending events in their total order;
//! - [`network`]: what is between hosts, with the packets and the events of a run;
//! - [`connection`], [`packets`]: slabs, so that nothing is allocated per packet;
//! - [`asking`]: what the sources of demand ([`session`]) want done; [`datagrams`]: those whose packets heed nothing;
//! - [`probes`]: measured packets; [`watching`]: what is looked at now and then;
//! - [`simulation`]: the loop, and what hosts do when a segment arrives;
//! - [`mod@memory`]: what a run will need, known before;
//! - [`mod@run`]: a whole run, with its warm-up, its rows and its summary;
//! - [`stepping`]: a run that somebody looks into and steers while it goes on.
//!
//! A run is a function of its scenario: same scenario, same bytes, on any machine.

mod asking;
mod calendar;
mod connection;
mod datagrams;
mod memory;
mod network;
mod packets;
mod probes;
mod queue;
mod run;
mod simulation;
mod stepping;
mod tmix;
mod totals;
mod watching;

pub use memory::{Need, memory};
pub use run::{Outcome, Pulse, run};
pub use simulation::Simulation;
pub use stepping::Observation;
