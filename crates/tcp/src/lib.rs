//! TCP endpoints are state machines: segments go in, segments come out, and `next_wake` says when to call again. They
//! have no sockets, no clock and no randomness.
//!
//! An [`Endpoint`] is one end of a connection. Sequence numbers are 64-bit stream offsets: the SYN is 0, the first
//! byte 1, the FIN follows the last byte. The application is counted, not carried: it says how many bytes it writes
//! and is told how many arrived in order.
//!
//! One shared frame ([`endpoint`]) does loss detection, retransmission, timers and ECN; a controller in [`cc`] only
//! says how the window moves. What differs between stacks is data: [`stack`].

pub mod cc;
pub mod endpoint;
pub mod stack;

mod byte_counts;
mod delivery;
mod memory;
mod outstanding;
mod rack;
mod reassembly;
mod rtt;
mod segment;
mod timer;

pub use byte_counts::{ByteCounts, Order};
pub use endpoint::{CongestionState, Emit, Endpoint, Stats};
pub use segment::{Flags, SackBlocks, Segment};
pub use stack::{
    Backoff, Config, Control, CubicDialect, DelayedAck, EcnMode, EcnOption, Hystart, LedbatSettings, Reduction, Repair,
    RtoFloor, RttSampling, SynTimer, profile, profiles,
};
