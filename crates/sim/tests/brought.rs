//! A discipline that is brought from outside: its row is made while the program runs, a scenario names it, and a run
//! has it.

use aqm::gauge::Gauge;
use aqm::param::{Kind, Length, Param, Text, Values};
use aqm::qdisc::brought::{Arriving, Handle, Next, Scheduler, Signals};
use aqm::registry::{self, Entry, Registry, Row, as_given};
use aqm::{Arrival, Cause, Gauges, Law, Verdict};
use base::{Rate, Time};
use record::Discard;
use scenario::{Resolved, resolve_with};
use std::collections::VecDeque;

/// Loses one packet in so many, and nothing else.
struct EveryNth {
    n: u64,
    arrived: u64,
}

impl Law for EveryNth {
    fn on_arrival(&mut self, _arrival: &Arrival, _now: Time) -> Verdict {
        self.arrived += 1;
        if self.arrived.is_multiple_of(self.n) { Verdict::Drop(Cause::EARLY) } else { Verdict::Pass }
    }
    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(1.0 / self.n as f64), ..Gauges::default() }
    }
    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        self.n = values.integer("n");
    }
}

/// Its row, of texts that are made here and now.
fn entry(name: &str) -> Entry {
    let n = Param {
        name: Text::from(["n"].concat()),
        kind: Kind::Integer,
        default: format!("{}", 5 * 10).into(),
        range: (2.0, 1e6),
        doc: format!("One packet in so many is lost by {name}.").into(),
        source: "none".into(),
    };
    let row = Row {
        name: Text::from(name.to_owned()),
        aliases: vec![],
        doc: format!("{name} loses packets by counting.").into(),
        source: "none".into(),
        year: 2026,
        marks: false,
        params: vec![registry::limit("1000p", "none").into(), registry::ECN.into(), n],
        fixed: vec![],
        gauges: vec![Gauge::probability("One in n.").into()],
        causes: Vec::new(),
        uses_rate: registry::never,
        resolve: as_given,
    };
    Entry::law(
        row,
        |_| size_of::<EveryNth>(),
        |values, _site| Box::new(EveryNth { n: values.integer("n"), arrived: 0 }),
    )
}

/// Drop-tail, written outside: the first `limit` packets wait.
struct DropTail {
    limit: f64,
    waiting: VecDeque<Handle>,
}

impl Scheduler for DropTail {
    fn offer(&mut self, arriving: &Arriving, _now: Time, signals: &mut dyn Signals) {
        if self.waiting.len() as f64 + 1.0 > self.limit {
            signals.drop(arriving.handle, Cause::TAIL);
        } else {
            self.waiting.push_back(arriving.handle);
        }
    }
    fn take(&mut self, _now: Time, _signals: &mut dyn Signals) -> Next {
        self.waiting.pop_front().map_or(Next::Empty, Next::Packet)
    }
    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        self.limit = packets(values);
    }
}

fn packets(values: &Values) -> f64 {
    match values.length("limit") {
        Length::Packets(packets) => packets,
        Length::Bytes(bytes) => bytes / 1500.0,
    }
}

fn drop_tail() -> Entry {
    let row = Row {
        name: "my_fifo",
        aliases: &[],
        doc: "First in, first out.",
        source: "none",
        year: 2026,
        marks: false,
        params: const { &[registry::limit("1000p", "none"), registry::ECN] },
        fixed: &[],
        gauges: &[],
        causes: &[],
        uses_rate: registry::never,
        resolve: as_given,
    };
    Entry::qdisc(row, |_| 0, |values, _site| Box::new(DropTail { limit: packets(values), waiting: VecDeque::new() }))
}

fn read(registry: &Registry, qdisc: &str) -> Result<Resolved, String> {
    let text = format!(
        "duration = \"5s\"\n[link]\nrate = \"10mbit\"\nqdisc = {qdisc}\n[[traffic]]\nkind = \"cbr\"\nrate = \"8mbit\"\n"
    );
    let none = |_: &str| Err("no such file".to_owned());
    resolve_with(registry, &text, "s.toml", &[], &none).map_err(|error| error.to_string())
}

/// The packets that came to the bottleneck, and those that the law lost.
fn lost(registry: &Registry, qdisc: &str) -> (f64, f64) {
    let resolved = read(registry, qdisc).expect("it resolves");
    let again = resolve_with(registry, resolved.text(), "s.toml", &[], &|_| Err(String::new())).expect("to itself");
    assert_eq!(again.text(), resolved.text());
    let outcome = sim::run(resolved.scenario().expect("no load"), &mut Discard, &mut |_| true).expect("it ends");
    let counts = outcome.meters[0].window();
    (counts.offered as f64, counts.dropped[Cause::EARLY.index()] as f64)
}

#[test]
fn a_law_that_was_brought_runs_as_any_other() {
    let registry = Registry::builtin().with(entry("every_nth")).expect("the name is free");
    // Where the window begins and ends within a count, a packet more or less.
    for (qdisc, share) in [
        ("\"every_nth\"", 0.02),
        ("{ kind = \"every_nth\", n = 4 }", 0.25),
        ("{ kind = \"fq_every_nth\", n = 4 }", 0.25),
        ("\"pfifo\"", 0.0),
    ] {
        let (offered, lost) = lost(&registry, qdisc);
        assert!(offered > 1000.0 && (lost - share * offered).abs() <= 1.0, "{qdisc}: {lost} of {offered}");
    }
}

#[test]
fn only_the_registry_that_has_it_knows_it() {
    let registry = Registry::builtin().with(entry("every_nth")).expect("the name is free");
    let unknown = read(&Registry::builtin(), "\"every_nth\"").expect_err("nobody has brought it");
    assert!(unknown.starts_with("s.toml:4: link.qdisc.kind = \"every_nth\": expected one of"), "{unknown}");
    let beyond = read(&registry, "{ kind = \"every_nth\", n = 1 }").expect_err("n is out of range");
    assert!(beyond.contains("n = 1: expected a whole number, from 2 to 1000000"), "{beyond}");
    for name in ["red", "every_nth", "droptail", "fq_codel"] {
        let taken = registry.clone().with(entry(name)).expect_err("the name is taken");
        assert!(taken.starts_with(&format!("{name}: expected a name that is not taken")), "{taken}");
    }
}

#[test]
fn a_discipline_that_was_brought_does_what_the_one_built_in_does() {
    let registry = Registry::builtin().with(drop_tail()).expect("the name is free");
    let run = |name: &str| {
        let text = format!(
            "duration = \"20s\"\n[link]\nrate = \"10mbit\"\nqdisc = {{ kind = \"{name}\", limit = \"20p\" }}\n\
             [[traffic]]\nkind = \"bulk\"\nflows = 8\n"
        );
        let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
        let outcome = sim::run(resolved.scenario().expect("no load"), &mut Discard, &mut |_| true).expect("it ends");
        format!("{:?}", outcome.meters)
    };
    let (ours, theirs) = (run("pfifo"), run("my_fifo"));
    assert_eq!(ours, theirs);
}
