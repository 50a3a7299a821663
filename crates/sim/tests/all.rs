//! The tests of whole runs in one program: it is linked once, and its threads share the processors.
//!
//! A new file of tests is a line here. Those of one file: `cargo test -p aqmlab-sim --test all -- brought::`.

mod brought;
mod cake;
mod common;
mod conservation;
mod counting;
mod determinism;
mod disciplines;
mod example;
mod hosts;
mod impairments;
mod ledbat;
mod media;
mod networks;
mod one_way;
mod pages;
mod physics;
mod populations;
mod pulse;
mod replay;
mod sessions;
mod stepping;
mod theory_tcp;
mod tmix;
mod transfers;
mod udp;
mod video;
mod watching;
mod windows;
