//! The tests of scenarios and what is made of them, in one program: it is linked once, and their threads share the processors.
//!
//! A new file of tests is a line here. `cargo test --package aqmlab-scenario --test all -- addressing::` runs those of one.

mod addressing;
mod bounds;
mod contradictions;
mod errors;
mod homes;
mod impairments;
mod kernel;
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
