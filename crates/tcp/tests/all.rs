//! The tests of endpoints and controllers in one program: it is linked once, and its threads share the processors.
//!
//! A new file of tests is a line here. Those of one file: `cargo test -p aqmlab-tcp --test all -- accurate::`.

mod accurate;
mod accurate_option;
mod common;
mod controllers;
mod laws;
mod ledbat_second;
mod ns2_packets;
mod prague;
mod properties;
mod theory;
mod theory_bbr;
mod theory_bbr3;
