//! This file runs the live test bed, in a process that is made for the run.

use pyo3::prelude::*;
use std::path::PathBuf;

/// Makes the run that `directory` describes and leaves everything there. Returns the exit code for the process, which
/// must have no other thread.
#[pyfunction]
#[cfg(target_os = "linux")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
pub fn live(py: Python<'_>, directory: PathBuf) -> u8 {
    py.detach(|| ::live::child(&crate::laws::registry(), &directory))
}

/// Refuses the run on other systems, since namespaces and TUN devices are Linux's.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
pub fn live(directory: PathBuf) -> u8 {
    eprintln!("{}: a live run needs Linux", directory.display());
    3
}
