//! A run is a function of its scenario: the same rows whenever, wherever and beside whatever it runs, and the same
//! demands whatever the network does with them.

use record::{Discard, DropRow, ExchangeRow, QueueRow, Sink};
use std::collections::BTreeMap;
use std::thread;

/// A little of everything: web users both ways, long flows with ECN, an unresponsive source, a law that draws, and
/// congestion enough to mark, drop and time out.
const MIXED: &str = r#"
    duration = "20s"
    tcp.stack = "freebsd4"
    warmup = "5s"
    cooldown = "1s"
    [link]
    rate = "10mbit"
    [link.qdisc]
    kind = "ared"
    ecn = true
    limit = "60p"
    [record]
    drops = true
    [[traffic]]
    kind = "web"
    users = 1200
    [[traffic]]
    kind = "bulk"
    flows = 3
    stack = "linux"
    ecn = "on"
    [[traffic]]
    kind = "cbr"
    flows = 2
    rate = "1mbit"
    direction = "reverse"
    "#;

/// The digest of [`MIXED`] with its own seed. It changes whenever anything does that has a part in the result: a
/// default, a draw, the order of two events, a rounding. Where that was meant, put in the digest that the failing test
/// prints, and say in CHANGELOG.md that results differ; where it was not, it is a bug. The number of events is in it
/// too: where the same comes of fewer events, its last digits alone change.
const GOLDEN: u64 = 0xa50f_60c4_f3bf_f490;

/// Sixty-four bits over all rows in the order in which they came (FNV-1a).
struct Digest {
    hash: u64,
    rows: [u32; 3],
}

impl Digest {
    fn new() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, rows: [0; 3] }
    }

    fn add(&mut self, table: usize, words: &[u64]) {
        self.rows[table] += 1;
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Sink for Digest {
    fn exchange(&mut self, row: &ExchangeRow) {
        let times = [row.start.ns(), row.response_time.ns(), row.setup.ns()];
        let sizes = [u64::from(row.request_bytes), row.response_bytes];
        let whose = [u64::from(row.traffic), u64::from(row.source), u64::from(row.direction)];
        self.add(0, &[&times[..], &sizes, &whose].concat());
    }

    fn queue(&mut self, row: &QueueRow) {
        let counts = [
            row.offered_packets,
            row.delivered_packets,
            row.dropped_packets,
            row.marked_packets,
            row.queue_packets,
            u32::from(row.direction),
        ]
        .map(u64::from);
        let waits = [row.queue_delay_sum.ns(), row.queue_delay_max.ns()];
        self.add(1, &[&counts[..], &waits, &[row.time.ns(), row.delivered_bytes, row.queue_bytes]].concat());
    }

    fn drop(&mut self, row: &DropRow) {
        let what =
            [u64::from(row.is_mark), row.cause.index() as u64, u64::from(row.size_bytes), u64::from(row.direction)];
        self.add(2, &[&what[..], &[row.time.ns(), row.flow]].concat());
    }
}

fn run_into(text: &str, overrides: &[(&str, &str)], sink: &mut dyn Sink) -> u64 {
    let overrides: Vec<_> = overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let none = |_: &str| Err("no files here".to_owned());
    let resolved = scenario::resolve(text, "determinism.toml", &overrides, &none).expect("a sound scenario");
    let scenario = resolved.scenario().expect("nothing to calibrate");
    let outcome = sim::run(scenario, sink, &mut |_| true).expect("not broken off");
    outcome.events
}

fn digest(seed: &str) -> u64 {
    let mut digest = Digest::new();
    let events = run_into(MIXED, &[("seed", seed)], &mut digest);
    assert!(digest.rows.iter().all(|&rows| rows > 100), "every table has rows: {:?}", digest.rows);
    digest.hash ^ events
}

#[test]
fn the_same_again() {
    let first = digest("7");
    assert_eq!(digest("7"), first);
    assert_ne!(digest("8"), first, "the seed matters");
}

#[test]
fn whatever_runs_beside_it() {
    let seeds = ["1", "2", "3", "4"];
    let alone = seeds.map(digest);
    let together = thread::scope(|scope| {
        let running = seeds.map(|seed| scope.spawn(move || digest(seed)));
        running.map(|thread| thread.join().expect("a run does not panic"))
    });
    assert_eq!(together, alone);
}

#[test]
fn what_is_recorded_does_not_change_what_happens() {
    let recorded = run_into(MIXED, &[], &mut Digest::new());
    let discarded = run_into(MIXED, &[("record.drops", "false"), ("record.interval", "1s")], &mut Discard);
    assert_eq!(recorded, discarded, "the same number of events");
}

#[test]
fn as_it_always_was() {
    let found = digest("1");
    assert_eq!(found, GOLDEN, "results differ from those of earlier versions; the new digest is {found:#018x}");
}

/// What each source asked for, in the order in which it was answered: bytes of the request and of the response.
#[derive(Default)]
struct Demands(BTreeMap<(u16, u32), Vec<(u32, u64)>>);

impl Sink for Demands {
    fn exchange(&mut self, row: &ExchangeRow) {
        self.0.entry((row.traffic, row.source)).or_default().push((row.request_bytes, row.response_bytes));
    }
    fn queue(&mut self, _row: &QueueRow) {}
    fn drop(&mut self, _row: &DropRow) {}
}

/// Under two disciplines every user asks for the same in the same order, as far as they get; with one connection at a
/// time, they are answered in that order too. Random arrivals ask for the same whenever they are answered.
#[test]
fn the_discipline_changes_no_demand() {
    let text = r#"
        duration = "60s"
        tcp.stack = "freebsd4"
        warmup = "0s"
        [link]
        rate = "5mbit"
        [[traffic]]
        kind = "web"
        users = 600
        parallel = 1
        persistent_parallel = 1
        [[traffic]]
        kind = "poisson"
        arrivals = "20hz"
        size = { pareto = { mean = "7000b", shape = 1.2 } }
        "#;
    let [one, other] =
        ["{ kind = 'pfifo', limit = '200p' }", "{ kind = 'pi', qref = '5p', ecn = true }"].map(|qdisc| {
            let mut demands = Demands::default();
            run_into(text, &[("link.qdisc", qdisc)], &mut demands);
            demands.0
        });
    let (mut compared, mut differ) = (0, 0);
    for (source, asked) in &one {
        let Some(asked_too) = other.get(source) else { continue };
        let both = asked.len().min(asked_too.len());
        assert_eq!(asked[..both], asked_too[..both], "traffic and source {source:?}");
        compared += both;
        differ += usize::from(asked.len() != asked_too.len());
    }
    assert!(compared > 2_000, "{compared} exchanges compared");
    assert!(differ > 10, "the disciplines made a difference to {differ} users");
}
