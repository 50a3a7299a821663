//! Random traces with the decisions of the oracle, the independent re-writing of the disciplines in
//! `tests/python/oracle`: every decision must be the same. `python -m oracle.conformance` runs thousands more.

use crate::replay;
use aqm::param::Kind;
use aqm::registry;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Rounding differs between two orders of operations: relative, and absolute where values are small.
const WITHIN: f64 = 1e-9;

#[test]
fn every_kept_trace_is_decided_as_the_oracle_says() {
    for file in kept() {
        let text = fs::read_to_string(folder().join(&file)).expect("a file of traces can be read");
        agrees(&file, &text);
    }
}

#[test]
fn every_discipline_has_traces_in_each_of_its_dialects() {
    let wanted: BTreeSet<String> = registry::rows()
        .flat_map(|row| match row.param("dialect").map(|param| param.kind) {
            Some(Kind::Word(dialects)) => dialects.iter().map(|name| format!("{}-{name}.jsonl", row.name)).collect(),
            _ => vec![format!("{}.jsonl", row.name)],
        })
        .collect();
    assert_eq!(kept(), wanted, "written by python -m oracle.conformance write");
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces")
}

fn kept() -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).expect("testdata/traces is there");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in ASCII")).collect()
}

fn agrees(file: &str, text: &str) {
    let mut traces = 0;
    for (index, line) in text.lines().enumerate() {
        let trace: Value = serde_json::from_str(line).expect("a JSON object a line");
        let place = format!("testdata/traces/{file}:{}, trace {} {}", index + 1, trace["seed"], trace["params"]);
        let reply = replay::reply(&trace);
        let expected = trace["decisions"].as_array().expect("decisions");
        let decisions = reply["decisions"].as_array().unwrap_or_else(|| panic!("{place}: {reply}"));
        assert_eq!(decisions.len(), expected.len(), "{place}");
        for (at, (decided, expected)) in decisions.iter().zip(expected).enumerate() {
            let op = &trace["ops"][at];
            assert!(same(decided, expected), "{place}: operation {at} {op}: {decided}, the oracle says {expected}");
        }
        traces += 1;
    }
    assert!(traces > 0, "{file} holds no traces");
}

/// Whether two decisions are equal, and two states but for rounding.
fn same(one: &Value, other: &Value) -> bool {
    let close = |key: &str| match (one[key].as_f64(), other[key].as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= WITHIN * b.abs().max(0.001),
        _ => one[key] == other[key],
    };
    match (one.is_object(), other.is_object()) {
        (true, true) => ["packets", "bytes", "probability", "control"].into_iter().all(close),
        _ => one == other,
    }
}
