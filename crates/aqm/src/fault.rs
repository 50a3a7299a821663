//! A law from outside may misbehave. That ends the run, and one line says what it did.

use std::panic;

/// The promise that a law has broken. It travels as a panic that prints nothing; [`caught`] catches it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The law.
    pub law: String,
    /// What it did, as in "answered 7, which is no verdict".
    pub what: String,
}

impl Fault {
    /// Ends the run.
    #[cold]
    pub fn raise(self) -> ! {
        panic::resume_unwind(Box::new(self))
    }

    /// Says in one line which law did what.
    pub fn message(&self) -> String {
        format!("the law {} {}", self.law, self.what)
    }
}

/// Returns what `run` returns, unless a law ends it.
///
/// # Errors
/// Says what the law did. Any other panic goes on.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Fault> {
    // What a broken run leaves is thrown away.
    panic::catch_unwind(panic::AssertUnwindSafe(run)).map_err(|panic| match panic.downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(other) => panic::resume_unwind(other),
    })
}
