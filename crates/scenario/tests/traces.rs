//! Random traces with the decisions of the oracle, the independent re-writing of the laws in `python/aqmlab/oracle`:
//! every decision must be the same. `python -m aqmlab.oracle.conformance` runs thousands more.

mod replay;

use serde_json::Value;

/// Rounding differs between two orders of operations: relative, and absolute where values are small.
const WITHIN: f64 = 1e-9;

macro_rules! families {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $name() {
                agrees($file, include_str!(concat!("../../../testdata/traces/", $file)));
            }
        )*
    };
}

families! {
    pfifo: "pfifo.jsonl",
    bfifo: "bfifo.jsonl",
    red_paper: "red-paper.jsonl",
    red_ns2: "red-ns2.jsonl",
    red_linux: "red-linux.jsonl",
    ared_paper: "ared-paper.jsonl",
    ared_ns2: "ared-ns2.jsonl",
    ared_linux: "ared-linux.jsonl",
    pi: "pi.jsonl",
    rem_paper: "rem-paper.jsonl",
    rem_ns2: "rem-ns2.jsonl",
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
