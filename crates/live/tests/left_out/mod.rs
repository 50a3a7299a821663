//! Says which test was left out, and why, also where nobody asked for the output of tests that pass: the test harness
//! keeps back what print macros write, and only that.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Says that the test `name` is left out.
pub fn left_out(name: &str, why: impl Display) {
    // In one piece, for tests run side by side. A closed standard error is no reason for a test to fail.
    let _ = stderr().write_all(format!("{name}: left out: {why}\n").as_bytes());
}
