//! A law or a discipline from outside may misbehave. That ends the run, and one line says what it did.

use std::panic;

/// The promise that a law or a discipline has broken. It travels as a panic that prints nothing; [`caught`] catches it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    kind: &'static str,
    name: String,
    what: String,
    packet: Option<u64>,
}

impl Fault {
    /// The law called `name` did `what`, as in "answered 7, which is no verdict".
    pub fn of_law(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self { kind: "law", name: name.into(), what: what.into(), packet: None }
    }

    /// The discipline called `name` did `what`, as in "sends packet 17 twice".
    pub fn of_discipline(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self { kind: "discipline", name: name.into(), what: what.into(), packet: None }
    }

    /// Adds the packet that it is about, the first one being 1.
    #[must_use]
    pub fn about(self, packet: u64) -> Self {
        Self { packet: Some(packet), ..self }
    }

    /// Adds where it happened.
    #[must_use]
    pub fn during(mut self, place: &str) -> Self {
        self.what.push_str(place);
        self
    }

    /// The packet that it is about, if it is about one.
    pub fn packet(&self) -> Option<u64> {
        self.packet
    }

    /// Ends the run.
    #[cold]
    pub fn raise(self) -> ! {
        panic::resume_unwind(Box::new(self))
    }

    /// Says in one line which law or discipline did what.
    pub fn message(&self) -> String {
        format!("the {} {} {}", self.kind, self.name, self.what)
    }
}

/// Returns what `run` returns, unless a law or a discipline ends it.
///
/// # Errors
/// Says what it did. Any other panic goes on.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Fault> {
    // What a broken run leaves is thrown away.
    panic::catch_unwind(panic::AssertUnwindSafe(run)).map_err(|panic| match panic.downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(other) => panic::resume_unwind(other),
    })
}
