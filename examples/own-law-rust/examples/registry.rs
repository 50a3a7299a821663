//! A law of one's own in a program of one's own: it is a row of the registry beside those built in, and a scenario
//! names it.
//!
//! ```sh
//! cargo run --release --example registry
//! ```

use aqm::param::{Kind, Param, Values};
use aqm::registry::{self, Entry, Registry, Row, as_given};
use aqm::{Arrival, Cause, Law, Verdict};
use base::{Rate, Time};
use scenario::resolve_with;

/// Loses every second packet that arrives at a queue of more than so many.
struct Half {
    most: u64,
    seen: u64,
}

impl Law for Half {
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        let is_long = u64::from(arrival.backlog.packets) > self.most;
        self.seen += u64::from(is_long);
        if is_long && self.seen.is_multiple_of(2) { Verdict::Drop(Cause::EARLY) } else { Verdict::Pass }
    }
    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        self.most = values.integer("most");
    }
}

const MOST: Param = Param {
    name: "most",
    kind: Kind::Integer,
    default: "20",
    range: (0.0, 1e6),
    doc: "Packets that may wait undisturbed.",
    source: "an example",
};

const ROW: Row = Row {
    name: "half",
    aliases: &[],
    doc: "Loses every second packet that arrives at a long queue.",
    source: "an example",
    year: 2026,
    marks: false,
    params: const { &[registry::limit("1000p", "an example"), registry::ECN, MOST] },
    fixed: &[],
    gauges: &[],
    causes: &[],
    uses_rate: registry::never,
    resolve: as_given,
};

pub fn main() -> Result<(), String> {
    let made = |values: &Values, _| -> Box<dyn Law + Send> { Box::new(Half { most: values.integer("most"), seen: 0 }) };
    let registry = Registry::builtin().with(Entry::law(ROW, |_| size_of::<Half>(), made))?;
    for qdisc in ["half", "fq_half", "pie"] {
        let text = format!(
            "duration = \"20s\"\n[link]\nrate = \"10mbit\"\nqdisc = \"{qdisc}\"\n\
             [[traffic]]\nkind = \"bulk\"\nflows = 4\n"
        );
        let no_files = |name: &str| Err(format!("{name}: expected no file"));
        let resolved = resolve_with(&registry, &text, "here", &[], &no_files).map_err(|error| error.to_string())?;
        let scenario = resolved.scenario().map_err(|error| error.to_string())?;
        let outcome = sim::run(scenario, &mut record::Discard, &mut |_| true).ok_or("it was stopped")?;
        let counts = outcome.meters[0].window();
        let wait_ms = 1e3 * counts.wait_mean_s().unwrap_or_default();
        println!("{qdisc:8} {wait_ms:6.2} ms in the mean, {} of {} lost", counts.dropped_total(), counts.offered);
    }
    Ok(())
}
