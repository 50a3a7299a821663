//! What a discipline says that its state takes is what it takes: an allocator counts, over the ranges of all parameters
//! that are numbers of things.
//!
//! Bounds: what is said is no less than what is held, so that nothing is built beyond a machine's memory, and no more
//! than twice that and 64 kB, so that nothing is refused for want of memory that it would not use.

mod common;
mod held;

use aqm::param::{Kind, Param, Text, Value, Values};
use aqm::registry::{self, Registry, Row, Site};
use base::{Rate, Stream};
use common::{Parcel, completed};
use held::HELD;

/// Checks the discipline with these values given, and the defaults for the others; whether they go together.
fn is_as_said(row: &Row<Text>, given: &[(Text, Value)]) -> bool {
    let rate = Rate::from_bps(100_000_000);
    let given_values = Values(given.iter().cloned().collect());
    let Ok(values) = completed(row, given_values, rate) else { return false };
    let said = Registry::builtin().find(&row.name).expect("it has a row").state_bytes(&values);
    let before = HELD.get();
    let qdisc = registry::build::<Parcel>(&row.name, &values, Site { rate, stream: Stream::named(1, "state") });
    let holds = HELD.get() - before;
    drop(qdisc);
    assert!(holds <= said, "{} {given:?}: holds {holds}, says {said}", row.name);
    assert!(said <= 2 * holds + (64 << 10), "{} {given:?}: holds {holds}, says {said}", row.name);
    true
}

/// Numbers of things over a range, as far as a test can hold them at once.
fn numbers(param: &Param<Text>) -> Vec<Value> {
    let (low, high) = (param.range.0.max(1.0), param.range.1.min(2048.0));
    [low, 64_f64.clamp(low, high), high].map(|n| Value::Integer(n as u64)).into()
}

#[test]
fn what_is_said_is_what_is_held() {
    for row in registry::rows().chain(registry::fair_rows()) {
        let mut checked = usize::from(is_as_said(row, &[]));
        for param in row.params.iter().filter(|param| param.kind == Kind::Integer) {
            for value in numbers(param) {
                // Of queues with a large state there are few, of many queues the state is the default.
                let few = row.params.iter().any(|other| other.name == "queues") && param.name != "queues";
                let given = [(param.name.clone(), value), ("queues".into(), Value::Integer(3))];
                checked += usize::from(is_as_said(row, if few { &given } else { &given[..1] }));
            }
        }
        assert!(checked > 0, "{}", row.name);
    }
}
