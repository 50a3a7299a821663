//! The live test bed, as the process that is made for a run calls it.

use pyo3::prelude::*;
use std::path::PathBuf;

/// Makes the run that `directory` describes and leaves everything there; the answer is the exit code of the process,
/// which must have no other thread.
#[pyfunction]
#[cfg(target_os = "linux")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
pub fn live(py: Python<'_>, directory: PathBuf) -> u8 {
    py.detach(|| ::live::child(&crate::laws::registry(), &directory))
}

/// There is none: namespaces and TUN devices are Linux's.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
pub fn live(directory: PathBuf) -> u8 {
    eprintln!("{}: a live run needs Linux", directory.display());
    3
}
