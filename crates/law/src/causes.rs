//! The causes that a law or a discipline of the interface may give, by the numbers that it gives.

use crate::abi;
use crate::entry::check_name;
use crate::foreign::Foreign;
use aqm::{Cause, OwnCause};

/// Kinds of causes, by their numbers in the interface.
const KINDS: [(i32, Cause); 4] = [
    (abi::EARLY, Cause::EARLY),
    (abi::FORCED, Cause::FORCED),
    (abi::OVERLOAD, Cause::OVERLOAD),
    (abi::TAIL, Cause::TAIL),
];

/// What a table says of causes.
#[derive(Clone, Debug)]
pub struct Causes {
    /// The kinds that it may give: a law says nothing of a full queue.
    kinds: &'static [(i32, Cause)],
    /// Its own, by number; the first is 1.
    own: Vec<OwnCause>,
}

impl Causes {
    /// The causes of the table of `name`.
    ///
    /// # Errors
    /// One of its own has a name that it cannot have, or is of no kind, in a line.
    pub fn of(foreign: &Foreign, name: &str) -> Result<Self, String> {
        let kinds = if foreign.holds_packets() { &KINDS[..] } else { &KINDS[..3] };
        let mut causes = Self { kinds, own: Vec::new() };
        for cause in foreign.causes() {
            let called = foreign.text(cause.name);
            check_name(&format!("{name}: a cause's name"), &called)?;
            let is_known = |known: &Cause| known.name() == called;
            if Cause::ALL.iter().chain(causes.own.iter().map(|own| &own.cause)).any(is_known) {
                return Err(format!("{name}: the cause {called} is there already: expected another name"));
            }
            let Some(kind) = causes.kind(cause.kind) else {
                return Err(format!("{name}: the cause {called} is of kind {}, which there is not", cause.kind));
            };
            let cause_of = Cause::own(&called, kind).ok_or_else(|| format!("{name}: there are too many causes"))?;
            causes.own.push(OwnCause { cause: cause_of, doc: foreign.text(cause.doc) });
        }
        Ok(causes)
    }

    /// Its own.
    pub fn own(&self) -> &[OwnCause] {
        &self.own
    }

    fn kind(&self, number: i32) -> Option<Cause> {
        self.kinds.iter().find(|(known, _)| *known == number).map(|(_, kind)| *kind)
    }

    /// The cause of a number.
    ///
    /// # Errors
    /// There is none: what is wrong with the number.
    pub fn find(&self, number: i32) -> Result<Cause, String> {
        if let Some(kind) = self.kind(number) {
            return Ok(kind);
        }
        if number < abi::OWN || number % abi::OWN != 0 {
            return Err(format!("{number}, which is no cause"));
        }
        let which = number / abi::OWN;
        let own = self.own.get(which as usize - 1).map(|own| own.cause);
        own.ok_or_else(|| match self.own.len() {
            0 => format!("cause {which} of its own, and declares none"),
            declared => format!("cause {which} of its own, and declares {declared}"),
        })
    }
}
