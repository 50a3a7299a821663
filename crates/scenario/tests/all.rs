//! The tests of scenarios in one program: it is linked once, and its threads share the processors.
//!
//! A new file of tests is a line here. Those of one file: `cargo test -p aqmlab-scenario --test all -- addressing::`.

mod addressing;
mod bounds;
mod contradictions;
mod errors;
mod homes;
mod impairments;
mod kernel;
mod known_as;
mod law;
mod linux;
mod linux_cake;
mod linux_random;
mod networks;
mod readers;
mod replay;
mod scenarios;
mod sessions;
mod set;
mod stacks;
mod tmix;
mod traces;
mod udp;
mod video;
