//! The discrete-event simulator: drives the network of [`net`], as the live router does, in virtual time.
//!
//! - [`queue`]: pending events in their total order;
//! - [`network`]: what is between hosts, with the packets and the events of a run;
//! - [`connection`], [`packets`]: slabs, so that nothing is allocated per packet;
//! - [`source`]: what is kept of those who ask, [`scenario::sources`]; [`replay`]: recordings of what they ask for;
//! - [`probes`]: measured packets; [`watching`]: what is looked at now and then;
//! - [`simulation`]: the loop, and what hosts do when a segment arrives;
//! - [`mod@memory`]: what a run will need, known before;
//! - [`mod@run`]: a whole run, with its warm-up, its rows and its summary.
//!
//! A run is a function of its scenario: same scenario, same bytes, on any machine.

mod connection;
mod memory;
mod network;
mod packets;
mod probes;
mod queue;
mod replay;
mod run;
mod simulation;
mod source;
mod tmix;
mod totals;
mod watching;

pub use memory::{Need, memory};
pub use run::{Outcome, Pulse, run};
