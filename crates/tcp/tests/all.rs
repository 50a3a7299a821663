//! The tests of endpoints, controllers and laws of TCP, in one program: it is linked once, and their threads share the processors.
//!
//! A new file of tests is a line here. `cargo test --package aqmlab-tcp --test all -- accurate::` runs those of one.

mod accurate;
mod accurate_option;
mod common;
mod controllers;
mod laws;
mod ledbat_second;
mod prague;
mod properties;
mod theory;
mod theory_bbr;
mod theory_bbr3;
