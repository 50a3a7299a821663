//! The tests of laws and disciplines in one program: it is linked once, and its threads share the processors.
//!
//! A new file of tests is a line here. Those of one file: `cargo test -p aqmlab-aqm --test all -- blue::`.

mod blue;
mod brought;
mod closed_forms;
mod common;
mod delay;
mod device;
mod equilibria;
mod fair_law;
mod fairness;
mod model;
mod operations;
mod order;
mod retune;
mod stretches;
mod theory;
mod trace;
mod tracked;
mod turns;
mod vectors;
