//! Laws in shared libraries: the example does what the law built in does, and what is no law is refused in a line.

mod built;

use aqm::Packet;
use aqm::param::{Value, Values};
use aqm::registry::{Entry, Registry, Site};
use base::{Ecn, FlowKey, Rate, Stream, Time};
use built::{built, written};
use record::Discard;
use scenario::resolve_with;
use std::path::Path;
use std::process::Command;

fn example() -> Entry {
    let (entry, built_with) = law::open(&built(Path::new("examples/own-law-c/my_pi.c"), "my_pi")).expect("it is a law");
    assert!(built_with.starts_with("C compiler "), "{built_with}");
    entry
}

/// What came of a run, and how many packets were marked.
fn run(registry: &Registry, qdisc: &str) -> (String, u64) {
    let text = format!(
        "duration = \"30s\"\n[link]\nrate = \"10mbit\"\nqdisc = {{ kind = \"{qdisc}\", ecn = true, a = 0.001, b = 0.0009 }}\n\
         [tcp]\necn = \"on\"\n[[traffic]]\nkind = \"bulk\"\nflows = 24\n[[traffic]]\nkind = \"cbr\"\nrate = \"1mbit\"\n"
    );
    let resolved = resolve_with(registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
    let outcome = sim::run(resolved.scenario().expect("no load"), &mut Discard, &mut |_| true).expect("it ends");
    let marked = outcome.meters[0].window().marked.iter().sum();
    (format!("{:?} {}", outcome.meters, outcome.events), marked)
}

#[test]
fn a_law_in_a_library_does_what_the_law_built_in_does() {
    let registry = Registry::builtin().with(example()).expect("the name is free");
    for (ours, theirs) in [("my_pi", "pi"), ("fq_my_pi", "fq_pi")] {
        let (ours, theirs) = (run(&registry, ours), run(&registry, theirs));
        assert!(ours.0 == theirs.0, "{} marks, {} marks", ours.1, theirs.1);
        assert!(ours.1 > 10, "{} marks", ours.1);
    }
}

#[test]
fn the_example_in_rust_is_built_out_of_tree_and_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies in crates/");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-law-rust");
    let words = ["build", "--quiet", "--offline", "--locked", "--manifest-path"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).arg(root.join("examples/own-law-rust/Cargo.toml")).arg("--target-dir").arg(&target);
    assert!(cargo.status().expect("cargo has built this test").success(), "is its Cargo.lock that of these crates?");
    let (entry, _) = law::open(&target.join("debug/libmy_law.so")).expect("it is a law");
    let registry = Registry::builtin().with(entry).expect("the name is free");
    let lost = |threshold: &str| {
        let text = format!(
            "[link]\nrate = \"10mbit\"\nqdisc = {{ kind = \"half_beyond\", threshold = \"{threshold}\" }}\n\
             [[traffic]]\nkind = \"bulk\""
        );
        let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
        let link = resolved.scenario().expect("no load").links[0].clone();
        let (entry, values) = (&link.qdiscs[0].entry, &link.qdiscs[0].values);
        law::check::drive(entry, values, link.rates[0], 1, 20_000, true).expect("it keeps its promises")
    };
    assert_eq!(lost("10s").lost, 0, "a full queue of 1000 packets at 10 Mb/s waits for 1.2 s");
    // Each packet that arrives and waits goes on, or is lost; no two in a row are. A threshold of nothing loses every
    // second of those that waited at all.
    let counts = lost("0ms");
    assert!(counts.lost > 1000 && counts.lost <= counts.taken + 1, "{counts:?}");
}

#[test]
fn it_is_tuned_while_a_run_goes_on() {
    let registry = Registry::builtin().with(example()).expect("the name is free");
    let text = "[link]\nrate = \"10mbit\"\nqdisc = { kind = \"my_pi\", w = \"100hz\" }\n[[traffic]]\nkind = \"bulk\"";
    let resolved = resolve_with(&registry, text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
    let mut spec = resolved.scenario().expect("no load").links[0].qdiscs[0].clone();
    let (rate, ms) = (Rate::from_bps(10_000_000), |ms: u64| Time::from_ns(ms * 1_000_000));
    let mut qdisc = spec.entry.build::<Sized1500>(&spec.values, Site { rate, stream: Stream::named(1, "law") });
    (1..=10).for_each(|tick| qdisc.tick(ms(10 * tick)));
    assert_eq!(qdisc.next_tick(), ms(110));
    // Ten ticks 50 packets below the reference, and no probability below 0.
    assert_eq!((qdisc.gauges().probability, qdisc.gauges().control), (Some(0.0), Some(-50.0)));
    spec.set(&[("w", "25hz")], Some(rate)).expect("it is in range");
    qdisc.retune(&spec.values, rate, ms(105));
    assert_eq!(qdisc.next_tick(), ms(140), "a period after the last tick");
    spec.set(&[("qref", "-1")], Some(rate)).expect_err("a queue is no shorter than nothing");
    spec.set(&[("qref", "0")], Some(rate)).expect("it is in range");
    spec.set(&[("a", "0.5")], Some(rate)).expect("it is in range");
    qdisc.retune(&spec.values, rate, ms(110));
    qdisc.tick(ms(140));
    assert_eq!(qdisc.gauges().probability, Some(0.0), "nothing waits");
}

/// A packet of 1500 bytes.
struct Sized1500;

impl Packet for Sized1500 {
    fn size(&self) -> u32 {
        1500
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark(&mut self) {}
    fn flow(&self) -> FlowKey {
        FlowKey(1)
    }
}

#[test]
fn its_row_says_what_its_table_says() {
    let entry = example();
    let row = entry.row();
    let params: Vec<String> = row.params.iter().map(|p| format!("{} {} {}", p.name, p.default, p.expected())).collect();
    assert_eq!(params[2..4], ["qref 50 a number, from 0 to 1000000000", "a 0.00001822 a number, from 0 to 1"]);
    assert_eq!(params[5], "w 170hz a frequency such as 170hz, from 0.1 to 1000000 hz");
    assert_eq!(row.params[2].doc, "The queue to settle at (packets).");
    assert!(row.marks && row.gauges.len() == 2 && entry.is_law());
    // A state of 56 bytes, and some hundred around it.
    let registry = Registry::builtin().with(entry.clone()).expect("the name is free");
    let fair = registry.find("fq_my_pi").expect("it has the form");
    let held = |queues: u64| {
        let mut values = Values::default();
        values.fill("queues", Value::Integer(queues));
        fair.state_bytes(&values)
    };
    let each = (held(1024) - held(0)) / 1024;
    assert!((200..1000).contains(&each), "{each} bytes a queue");
}

/// A law that does `body` at each arrival, of the version `version`.
fn misbehaving(name: &str, version: &str, body: &str) -> Result<Entry, String> {
    let code = format!(
        "#include \"aqmlab_law.h\"\n\
         static int32_t on_arrival(void *state, const struct aqmlab_facts *facts) {{ (void)state; (void)facts; {body} }}\n\
         static const struct aqmlab_law law = {{.version = {version}, .name = \"{name}\", .tick_param = -1,\n\
         .on_arrival = on_arrival}};\n\
         const struct aqmlab_law *aqmlab_law_table(void) {{ return &law; }}\n"
    );
    law::open(&written(name, &code)).map(|(entry, _)| entry)
}

#[test]
fn a_law_that_misbehaves_is_named() {
    let bodies = [
        ("wild", "return 7;", "answered 7, which is no verdict"),
        ("unsure", "return facts->chance(facts, 2.0);", "drew with probability 2: expected one from 0 to 1"),
        ("lost", "return facts->chance(facts, 0.0 / 0.0);", "drew with probability NaN: expected one from 0 to 1"),
        ("marks", "return AQMLAB_MARK;", "marked a packet that may not be marked"),
        ("gives_up", "return AQMLAB_FAILED;", "failed: it raised an exception, or answered that it cannot go on"),
    ];
    for (name, body, told) in bodies {
        let entry = misbehaving(name, "AQMLAB_LAW_VERSION", body).expect("it is a law");
        let registry = Registry::builtin().with(entry).expect("the name is free");
        let fault = aqm::fault::caught(|| {
            let text = format!(
                "duration = \"1s\"\n[link]\nrate = \"10mbit\"\nqdisc = \"{name}\"\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n"
            );
            let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
            sim::run(resolved.scenario().expect("no load"), &mut Discard, &mut |_| true).map(drop)
        })
        .expect_err("it misbehaves");
        assert!(fault.message().starts_with(&format!("the law {name} {told}")), "{}", fault.message());
        assert!(fault.message().contains("in on_arrival, at 0."), "{}", fault.message());
    }
}

#[test]
fn a_check_tells_the_story_of_what_went_wrong() {
    let drive = |entry: &Entry, seed| {
        let registry = Registry::builtin().with(entry.clone()).expect("the name is free");
        let text = format!("[link]\nrate = \"10mbit\"\nqdisc = \"{}\"\n[[traffic]]\nkind = \"bulk\"", entry.row().name);
        let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
        let link = resolved.scenario().expect("no load").links[0].clone();
        law::check::drive(entry, &link.qdiscs[0].values, link.rates[0], seed, 20_000, true)
    };
    let counts = drive(&example(), 1).expect("it keeps its promises");
    assert_eq!(drive(&example(), 1), Ok(counts), "the same once more");
    assert!(counts.offered > 5000 && counts.ticks > 60 * 170 && counts.taken > 1000, "{counts:?}");
    let late = "static int seen; return ++seen > 100 ? 9 : 0;";
    let (fault, story) =
        drive(&misbehaving("late", "AQMLAB_LAW_VERSION", late).expect("it is a law"), 1).expect_err("9");
    assert!(fault.message().starts_with("the law late answered 9"), "{}", fault.message());
    assert!(story.last().expect("there is one").contains("bytes") && story.len() == 8, "{story:?}");
}

/// A discipline in C: a first-in-first-out queue that does `body` when it is asked for a packet.
fn holding(name: &str, body: &str) -> Result<Entry, String> {
    let code = format!(
        "#include \"aqmlab_law.h\"\n\
         #include <stddef.h>\n\
         struct ring {{ int64_t first, count, handles[1024]; }};\n\
         static int64_t offer(void *state, const struct aqmlab_queue *queue) {{\n\
             struct ring *ring = state;\n\
             if (queue->is_full) return queue->drop(queue, queue->handle, AQMLAB_TAIL);\n\
             ring->handles[(ring->first + ring->count++) % 1024] = queue->handle;\n\
             return 0; }}\n\
         static int64_t take(void *state, const struct aqmlab_queue *queue) {{\n\
             struct ring *ring = state; (void)queue;\n\
             if (ring->count == 0) return 0;\n\
             int64_t handle = ring->handles[ring->first]; {body}\n\
             ring->count--; ring->first = (ring->first + 1) % 1024;\n\
             return handle; }}\n\
         static const struct aqmlab_gauge gauges[] = {{{{ .name = \"flows\", .doc = \"\", .unit = \"\",\n\
             .offset = offsetof(struct ring, count), .is_integer = 1 }}}};\n\
         static const struct aqmlab_discipline discipline = {{ .law = {{ .version = AQMLAB_LAW_VERSION,\n\
             .state_bytes = sizeof(struct ring), .name = \"{name}\", .tick_param = -1, .marks = 1,\n\
             .gauges = gauges, .gauges_count = 1 }}, .offer = offer, .take = take }};\n\
         const struct aqmlab_discipline *aqmlab_discipline_table(void) {{ return &discipline; }}\n"
    );
    law::open(&written(name, &code)).map(|(entry, _)| entry)
}

fn driven(entry: &Entry, seed: u64, more: &str) -> Result<law::check::Counts, (aqm::Fault, Vec<String>)> {
    let builtin = Registry::builtin();
    let (name, is_known) = (&entry.row().name, builtin.find(&entry.row().name).is_some());
    let registry = if is_known { builtin } else { builtin.with(entry.clone()).expect("the name is free") };
    let text = format!(
        "[link]\nrate = \"10mbit\"\nqdisc = {{ kind = \"{name}\", limit = \"60p\"{more} }}\n[[traffic]]\nkind = \"bulk\""
    );
    let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
    let link = resolved.scenario().expect("no load").links[0].clone();
    law::check::drive(entry, &link.qdiscs[0].values, link.rates[0], seed, 20_000, true)
}

#[test]
fn a_discipline_in_a_library_does_what_the_one_built_in_does() {
    let ours = holding("my_fifo", "").expect("it is a discipline");
    assert!(!ours.is_law() && ours.row().marks && ours.row().gauges.len() == 1);
    let theirs = Registry::builtin().find("pfifo").expect("it is built in").clone();
    for seed in 1..=20 {
        let (ours, theirs) = (driven(&ours, seed, ""), driven(&theirs, seed, ""));
        assert!(ours.as_ref().is_ok_and(|counts| counts.refused > 100), "{ours:?}");
        assert_eq!(ours, theirs, "seed {seed}");
    }
}

#[test]
fn a_check_counts_packets_that_overtake_others_of_their_flow() {
    let fifo = driven(&holding("in_order", "").expect("it is a discipline"), 1, "").expect("it keeps its promises");
    assert_eq!((fifo.reordered, fifo.overtaking), (0, None));
    let last = "return ring->handles[(ring->first + --ring->count) % 1024];";
    let lifo = driven(&holding("lifo", last).expect("it is a discipline"), 1, "").expect("it keeps its promises");
    let (first, later) = lifo.overtaking.expect("the last comes first");
    assert!(first > later && lifo.reordered > lifo.taken / 10, "{lifo:?}");
}

#[test]
fn a_discipline_in_a_library_that_misbehaves_is_named() {
    let bodies = [
        (
            "twice",
            "if (queue->facts.now_ns > 100000000) return ring->handles[(ring->first + 1023) % 1024];",
            "sends packet ",
            "which it does not hold: it was sent before (in take, at ",
        ),
        (
            "blind",
            "queue->mark(queue, handle, AQMLAB_EARLY);",
            "marks packet ",
            "which is not ECN-capable (in take, at ",
        ),
        ("odd", "queue->drop(queue, handle, 5);", "loses packet ", "for 5, which is no cause (in take, at "),
        ("gone", "queue->drop(queue, handle, AQMLAB_EARLY);", "sends packet ", "it was lost before (in take, at "),
        (
            "hides",
            "if (ring->count > 30) return 0;",
            "says that nothing waits, but holds ",
            "the longest (in take, at ",
        ),
        ("waits", "if (ring->count > 30) return queue->later(queue, 1000);", "keeps packet ", "and it sends nothing"),
        (
            "hurries",
            "if (ring->count > 30) return queue->later(queue, 0);",
            "wants to be asked again in 0 ns",
            "in take",
        ),
        (
            "forgets",
            "if (ring->count > 20) return ring->count > 30 ? AQMLAB_LATER : queue->later(queue, 1000);",
            "wants to be asked again in 0 ns",
            "in take",
        ),
        ("wild", "return -7;", "answered -7, which is no packet", "in take"),
        ("unborn", "return 1LL << 60;", "sends a packet that never arrived", "in take"),
        ("gives_up", "return AQMLAB_FAILED;", "failed: it raised an exception, or answered that it", "in take"),
    ];
    for (name, body, did, how) in bodies {
        let entry = holding(name, body).expect("it is a discipline");
        let (fault, story) = driven(&entry, 1, ", ecn = true").expect_err("it misbehaves");
        let said = fault.message();
        assert!(said.starts_with(&format!("the discipline {name} {did}")) && said.contains(how), "{said}");
        assert!(story.len() >= 8 || said.contains("at 0.000"), "{story:?}");
        if let Some(number) = fault.packet() {
            let arrives = format!("packet {number} of ");
            assert!(story.iter().any(|line| line.contains(&arrives)), "{said}: {story:?}");
        }
    }
    let marks = holding("mute", "queue->mark(queue, handle, AQMLAB_EARLY);").expect("it is a discipline");
    let (fault, _) = driven(&marks, 1, "").expect_err("ecn is not set");
    assert!(fault.message().contains("which may not be marked: ecn is not set"), "{}", fault.message());
}

#[test]
fn what_is_no_discipline_is_refused() {
    let code = "#include \"aqmlab_law.h\"\n\
                static int64_t take(void *s, const struct aqmlab_queue *q) { (void)s; (void)q; return 0; }\n\
                static const struct aqmlab_discipline d = { .law = { .version = AQMLAB_LAW_VERSION, .name = \"half\", .tick_param = -1 },\n\
                .take = take };\n\
                const struct aqmlab_discipline *aqmlab_discipline_table(void) { return &d; }\n";
    let wrong = law::open(&written("half", code)).map(drop).expect_err("it has no offer");
    assert_eq!(wrong, "is a discipline without offer or take: expected both");
}

#[test]
fn what_is_no_law_is_refused() {
    let wrong = misbehaving("of_tomorrow", "AQMLAB_LAW_VERSION + 1", "return 0;").expect_err("another version");
    let version = law::abi::VERSION;
    assert_eq!(wrong, format!("is of version {} of the interface: expected {version}", version + 1));
    let nothing = law::open(&written("nothing", "int nothing;\n")).map(drop).expect_err("it exports nothing");
    assert!(nothing.contains("aqmlab_law_table"), "{nothing}");
    assert!(law::open(Path::new("examples/web.toml")).is_err(), "no library at all");
}

/// A law whose table has `more`.
fn with_table(name: &str, more: &str) -> Result<Entry, String> {
    let code = format!(
        "#include \"aqmlab_law.h\"\n\
         #include <math.h>\n\
         static int32_t on_arrival(void *s, const struct aqmlab_facts *f) {{ (void)s; (void)f; return 0; }}\n\
         static const struct aqmlab_law law = {{ .version = AQMLAB_LAW_VERSION, .name = \"{name}\",\n\
         .state_bytes = 8, .tick_param = -1, .on_arrival = on_arrival, {more} }};\n\
         const struct aqmlab_law *aqmlab_law_table(void) {{ return &law; }}\n"
    );
    law::open(&written(name, &code)).map(|(entry, _)| entry)
}

#[test]
fn a_table_that_lacks_what_it_says_is_refused() {
    for list in ["params", "gauges", "causes"] {
        let wrong = with_table(&format!("no_{list}"), &format!(".{list}_count = 3")).expect_err("there are none");
        assert_eq!(wrong, format!("says {list}_count = 3 and has {list} = NULL: expected 3 of them, or 0"));
    }
    let code = "#include \"aqmlab_law.h\"\n\
                static const struct aqmlab_law law = { .version = AQMLAB_LAW_VERSION, .name = \"idle\", .tick_param = -1 };\n\
                const struct aqmlab_law *aqmlab_law_table(void) { return &law; }\n";
    let wrong = law::open(&written("idle", code)).map(drop).expect_err("it decides nothing");
    assert_eq!(wrong, "idle: decides nothing: expected on_arrival or on_departure, which answer a verdict");
}

#[test]
fn a_parameter_is_what_its_kind_can_hold_and_is_refused_as_it_is_written() {
    let parameter = |name: &str, fields: &str| {
        let row = format!("{{ .name = \"x\", .doc = \"\", .unit = \"\", {fields} }}");
        with_table(name, &format!(".params = (const struct aqmlab_param[]){{ {row} }}, .params_count = 1"))
    };
    let refused = [
        ("INTEGER", "-7", "0", "9", "the default is -7: expected a whole number, from 0 to 9"),
        ("INTEGER", "2.5", "0", "9", "the default is 2.5, which is not whole: expected a whole number, from 0 to 9"),
        ("INTEGER", "1e30", "0", "INFINITY", "a whole number, from 0 to 9007199254740992"),
        ("INTEGER", "3", "-10", "9", "low is -10: expected 0 or more"),
        ("INTEGER", "3", "NAN", "9", "low is NaN: expected 0 or more"),
        ("NUMBER", "3", "0", "NAN", "high is NaN: expected a number"),
        ("NUMBER", "NAN", "0", "9", "the default is NaN: expected a number, from 0 to 9"),
        ("FLAG", "2", "0", "0", "the default is 2: expected true or false"),
        ("TIME", "-5e6", "0", "1e9", "the default is -5000000 ns: expected a time such as 5ms, from 0 to 1 s"),
        ("TIME", "0.5", "0", "1e9", "the default is 0.5 ns, which is not whole: expected a time such as 5ms"),
        (
            "RATE",
            "0",
            "0",
            "1e9",
            "the default is 0 bit/s: expected a rate such as 100mbit, from 1 to 1000000000 bit/s",
        ),
        ("SIZE", "5e9", "0", "INFINITY", "the default is 5000000000 bytes: expected a size such as 500b, from 0 to 42"),
        ("FREQUENCY", "-1", "0", "9", "the default is -1 hz: expected a frequency such as 170hz, from 0 to 9 hz"),
    ];
    for (at, (kind, default, low, high, said)) in refused.into_iter().enumerate() {
        let fields = format!(".kind = AQMLAB_KIND_{kind}, .default_value = {default}, .low = {low}, .high = {high}");
        let wrong = parameter(&format!("refused_{at}"), &fields).expect_err(&fields);
        assert!(wrong.contains(": x: ") && wrong.contains(said), "{wrong}");
    }
    let taken = [
        ("INTEGER", "9007199254740992", "-INFINITY", "INFINITY", "9007199254740992"),
        ("NUMBER", "-0.5", "-1", "1", "-0.5"),
        ("TIME", "5e6", "0", "1e15", "5ms"),
        ("SIZE", "4294967295", "0", "INFINITY", "4294967295b"),
        ("FLAG", "1", "0", "0", "true"),
    ];
    for (at, (kind, default, low, high, said)) in taken.into_iter().enumerate() {
        let fields = format!(".kind = AQMLAB_KIND_{kind}, .default_value = {default}, .low = {low}, .high = {high}");
        let entry = parameter(&format!("taken_{at}"), &fields).expect(&fields);
        assert_eq!(entry.row().params.iter().find(|one| one.name == "x").expect("it is there").default, said);
        Registry::builtin().with(entry).expect("the name is free");
    }
}
