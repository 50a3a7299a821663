//! The words every part of aqmlab speaks: instants and spans of time, rates, ECN fields, flows, named random
//! streams, distributions, and mathematics that gives the same bits on every machine.
//!
//! Nothing here reads a clock, does I/O or draws randomness of its own.

pub mod dist;
pub mod maths;

mod fetch;
mod flow;
mod pack;
mod rate;
mod stream;
mod time;

pub use dist::Distribution;
pub use fetch::fetch;
pub use flow::{Ecn, FlowKey};
pub use pack::{Pack, Packer, Unpacker, Whole};
pub use rate::{Pace, Rate, Serializer};
pub use stream::Stream;
pub use time::{Span, Time};
