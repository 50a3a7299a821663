//! One parameter of a discipline that is set by name: read, resolved and refused as in a scenario.

use base::Rate;
use scenario::{QdiscSpec, resolve};

const RATE: Rate = Rate::from_bps(10_000_000);

fn spec(qdisc: &str) -> QdiscSpec {
    let text = format!("[link]\nrate = \"10mbit\"\nqdisc = {qdisc}\n[[traffic]]\nkind = \"bulk\"\n");
    let none = |_: &str| Err("no such file".to_owned());
    let resolved = resolve(&text, "s.toml", &[], &none).expect("the scenario is good");
    resolved.scenario().expect("it asks for no load").link().qdiscs[0].clone()
}

#[test]
fn a_parameter_is_set_as_a_scenario_has_it() {
    for (written, name, text, same) in [
        ("\"red\"", "max", "20p", "{ kind = \"red\", max = \"20p\", gentle_end = \"30p\" }"),
        ("\"pfifo\"", "limit", "12kb", "{ kind = \"pfifo\", limit = \"12kb\" }"),
        ("\"codel\"", "ecn", "true", "{ kind = \"codel\", ecn = true }"),
        ("\"pi\"", "qref", "5ms", "{ kind = \"pi\", qref = \"5ms\" }"),
        ("\"fq_red\"", "wq", "0.01", "{ kind = \"fq_red\", wq = 0.01 }"),
        ("\"fq_pie\"", "quantum", "\"300b\"", "{ kind = \"fq_pie\", quantum = \"300b\" }"),
    ] {
        let mut spec_set = spec(written);
        spec_set.set(&[(name, text)], Some(RATE)).expect("it is good");
        assert_eq!(spec_set.values, spec(same).values, "{written} {name} = {text}");
        // To what it is, whatever it is.
        let before = spec_set.clone();
        for (name, value) in &before.values.0 {
            let written = value.to_string();
            spec_set.set(&[(name, &written)], Some(RATE)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(spec_set.values, before.values, "{written} {name}");
        }
    }
}

#[test]
fn several_parameters_are_set_at_once_or_none() {
    let mut both = spec("\"red\"");
    // Each alone would be beyond what the other is.
    let changes = [("min", "50p"), ("max", "200p"), ("gentle_end", "400p")];
    both.set(&changes, Some(RATE)).expect("it is good");
    let written = "{ kind = \"red\", min = \"50p\", max = \"200p\", gentle_end = \"400p\" }";
    let same = ["min", "max", "gentle_end"].map(|name| both.values.length(name) == spec(written).values.length(name));
    assert_eq!(same, [true; 3]);
    let before = both.clone();
    both.set(&[("min", "10p"), ("max", "5p")], Some(RATE)).expect_err("the second is less");
    assert_eq!(both.values, before.values);
}

#[test]
fn what_cannot_be_set_is_refused_in_a_line_and_leaves_all_as_it_was() {
    for (written, name, text, line) in [
        (
            "\"red\"",
            "min",
            "20p",
            "override: max = \"15p\": expected a length of at least min, 20p, and in its unit (red)",
        ),
        ("\"red\"", "wq", "2", "override: wq = 2: expected a number, from 1e-12 to 1 (red)"),
        (
            "\"red\"",
            "limit",
            "5ms",
            "override: limit = \"5ms\": expected packets such as 24p or bytes such as 12kb (red)",
        ),
        ("\"pfifo\"", "ecn", "true", "override: ecn = true: expected false: this discipline never marks (pfifo)"),
        (
            "\"codel\"",
            "kind",
            "red",
            "override: kind = \"red\": expected codel as before: it cannot change while a run goes on",
        ),
        (
            "\"fq_codel\"",
            "flows",
            "16",
            "override: flows = 16: expected 1024 as before: it cannot change while a run goes on (fq_codel)",
        ),
        (
            "\"codel\"",
            "dialect",
            "linux",
            "override: dialect = \"linux\": expected rfc as before: it cannot change while a run goes on (codel)",
        ),
        (
            "\"pi\"",
            "flows",
            "60",
            "override: flows = 60: expected nothing as before: it cannot change while a run goes on (pi)",
        ),
    ] {
        let mut spec_set = spec(written);
        let error = spec_set.set(&[(name, text)], Some(RATE)).expect_err("it is refused");
        assert_eq!(error.to_string(), line);
        assert_eq!(spec_set.values, spec(written).values, "{written} {name}");
    }
    let error = spec("\"codel\"").set(&[("targte", "1ms")], Some(RATE)).expect_err("there is none");
    assert!(error.to_string().starts_with("override: targte = \"1ms\": unknown key"), "{error}");
}
