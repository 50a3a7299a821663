//! This crate keeps what a run leaves behind: counts and histograms, rows, tables and the summary.
//!
//! The drivers tell a [`Meter`] per link and direction what happens there and a [`Responses`] what users saw, and
//! hand finished rows to a [`Sink`], at the instants that a [`Window`] gives. Only what falls into the measured window
//! counts; warm-up and cool-down are in the time series but in no figure.

pub mod measures;
pub mod rows;
pub mod table;

mod columns;
mod demands;
mod fates;
mod frames;
mod meter;
mod probes;
mod responses;
mod seconds;
mod summary;
mod tally;
mod window;

pub use frames::{Encoded, Frames};
pub use measures::hosts::{HeldBack, TcpTotals};
pub use meter::{Meter, Passed};
pub use probes::Probes;
pub use responses::Responses;
pub use rows::{
    DelayRow, DemandRow, Demanded, Discard, DropRow, ExchangeRow, FrameRow, ProbeRow, QueueRow, Sink, TcpRow,
};
pub use seconds::seconds;
pub use summary::{Crossing, Engine, Summary, Waits};
pub use tally::Tally;
pub use window::{Edge, Window};
