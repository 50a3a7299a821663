//! What is wrong with a law from outside that misbehaves: it ends the run, and is told in one line.

use std::panic;

/// A law has broken its promises. It travels as a panic that says nothing by itself; whoever runs laws catches it with
/// [`caught`].
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

    /// In one line.
    pub fn message(&self) -> String {
        format!("the law {} {}", self.law, self.what)
    }
}

/// What `run` comes to, unless a law ends it.
///
/// # Errors
/// What the law did. Any other panic goes on.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Fault> {
    // What a broken run leaves is thrown away.
    panic::catch_unwind(panic::AssertUnwindSafe(run)).map_err(|panic| match panic.downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(other) => panic::resume_unwind(other),
    })
}
