//! Runs a trace of offers and takes through a discipline and writes down what it decides. The protocol, one JSON
//! object a line each way, is in `tests/python/oracle/README.md`.

use aqm::Qdisc;
use aqm::param::{Kind, Param, Text};
use aqm::registry::{self, Row, Site};
use aqm::replay::{Deed, Numbered, Outcome, Step};
use base::{Ecn, FlowKey, Rate, Stream, Time};
use serde_json::{Value, json};

/// The reply to one request.
pub fn reply(request: &Value) -> Value {
    if request.get("list").is_some() {
        return json!({ "disciplines": registry::rows().map(row).collect::<Vec<_>>() });
    }
    match replay(request) {
        Ok(decisions) => json!({ "decisions": decisions }),
        Err(reason) => json!({ "refused": reason }),
    }
}

/// A discipline and its parameters, as far as inventing traces needs them.
fn row(row: &Row<Text>) -> Value {
    json!({ "name": row.name, "marks": row.marks, "params": row.params.iter().map(param).collect::<Vec<_>>() })
}

fn param(param: &Param<Text>) -> Value {
    let words: &[&str] = if let Kind::Word(words) = param.kind { words } else { &[] };
    let kind = match param.kind {
        Kind::Length => "length",
        Kind::LengthOrTime => "length or time",
        Kind::Time => "time",
        Kind::Frequency => "frequency",
        Kind::Rate => "rate",
        Kind::Number => "number",
        Kind::Integer => "integer",
        Kind::Flag => "flag",
        Kind::Size => "size",
        Kind::Word(_) => "word",
        Kind::Selector => "selector",
    };
    // Flags and words have no range, and JSON no infinity.
    let end = |x: f64| x.is_finite().then_some(x);
    json!({
        "name": param.name,
        "kind": kind,
        "words": words,
        "default": param.default,
        "low": end(param.range.0),
        "high": end(param.range.1),
    })
}

/// The decisions of a trace, or why it cannot be run.
fn replay(request: &Value) -> Result<Vec<Value>, String> {
    let kind = request["kind"].as_str().ok_or("kind: a name")?;
    let rate_bps = request["rate_bps"].as_u64().ok_or("rate_bps: a whole number")?;
    let seed = request["seed"].as_u64().ok_or("seed: a whole number")?;
    let mut qdisc = build(kind, &request["params"], rate_bps, seed)?;
    let steps: Result<Vec<Step>, String> = request["ops"].as_array().ok_or("ops: an array")?.iter().map(step).collect();
    let outcomes = aqm::replay::replay(&mut *qdisc, steps?);
    Ok(outcomes.into_iter().map(decision).collect())
}

fn decision(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Told(told) => json!(told),
        Outcome::State(backlog, gauges) => json!({
            "packets": backlog.packets,
            "bytes": backlog.bytes,
            "probability": gauges.probability,
            "control": gauges.control,
        }),
    }
}

/// The discipline as a scenario would have it, on the random stream that the vectors use.
fn build(kind: &str, params: &Value, rate_bps: u64, seed: u64) -> Result<Box<dyn Qdisc<Numbered> + Send>, String> {
    let mut text = format!("[[traffic]]\nkind = \"bulk\"\nflows = 1\n[link]\nrate = \"{rate_bps}bit\"\n");
    text += &format!("[link.qdisc]\nkind = \"{kind}\"\n");
    for (name, value) in params.as_object().ok_or("params: an object")? {
        let value = value.as_str().ok_or("a parameter: text")?;
        let is_bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
        text += &if is_bare { format!("{name} = {value}\n") } else { format!("{name} = \"{value}\"\n") };
    }
    let resolved = scenario::resolve(&text, "trace", &[], &|_| Err("no files here".into()));
    let resolved = resolved.map_err(|error| error.to_string())?;
    let qdisc = &resolved.scenario().map_err(|error| error.to_string())?.link().qdiscs[0];
    let site = Site { rate: Rate::from_bps(rate_bps), stream: Stream::named(seed, "vector") };
    Ok(qdisc.entry.build(&qdisc.values, site))
}

fn step(op: &Value) -> Result<Step, String> {
    let (deed, at_ns) = op[0].as_str().zip(op[1].as_u64()).ok_or("an operation: a word and nanoseconds")?;
    let deed = match deed {
        "offer" => offer(op)?,
        "take" => Deed::Take,
        "look" => Deed::Look,
        other => return Err(format!("{other}: expected offer, take or look")),
    };
    Ok(Step { at: Time::from_ns(at_ns), deed })
}

fn offer(op: &Value) -> Result<Deed, String> {
    let size = op[2].as_u64().and_then(|size| u32::try_from(size).ok()).ok_or("an offer: a size in bytes")?;
    let ecn = match op[3].as_str() {
        Some("not-ect") => Ecn::NotEct,
        Some("ect0") => Ecn::Ect0,
        Some("ect1") => Ecn::Ect1,
        Some("ce") => Ecn::Ce,
        _ => return Err("an offer: not-ect, ect0, ect1 or ce".into()),
    };
    let flow = FlowKey(op[4].as_u64().ok_or("an offer: a flow's number")?);
    Ok(Deed::Offer { size, ecn, flow })
}
