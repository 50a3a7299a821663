//! This file gives the registries to Python as JSON, and the equilibrium of a discipline's values.

use aqm::OwnCause;
use aqm::gauge::Gauge;
use aqm::param::{Kind, Param, Text};
use aqm::qdisc::fq_law;
use aqm::redopt::{self, RedOpt};
use aqm::registry::{Discipline, Entry, Registry};
use scenario::{Key, Link, Takes};
use serde_json::{Value, json};
use tcp::cc::Control;

/// Every discipline with its parameters: those with a row of their own, then every law under fair queueing, which
/// names its `law`.
pub fn disciplines() -> Value {
    let registry = Registry::builtin();
    let own = registry.own().map(|entry| discipline(entry, None));
    let fair = registry.fair().map(|entry| discipline(entry, fq_law::law_of(&entry.row().name)));
    own.chain(fair).collect()
}

/// One discipline with its parameters.
pub fn discipline(entry: &Entry, law: Option<&str>) -> Value {
    let row = entry.row();
    json!({
        "name": row.name,
        "kind": if entry.is_law() { "law" } else { "discipline" },
        "law": law,
        "aliases": row.aliases,
        "doc": row.doc,
        "source": row.source,
        "year": row.year,
        "marks": row.marks,
        "gauges": row.gauges.iter().map(gauge).collect::<Vec<_>>(),
        "causes": row.causes.iter().map(cause).collect::<Vec<_>>(),
        "params": row.params.iter().map(|param| parameter(param, row.fixed.contains(&param.name))).collect::<Vec<_>>(),
    })
}

fn gauge(gauge: &Gauge<Text>) -> Value {
    json!({ "name": gauge.name, "unit": gauge.unit, "doc": gauge.doc, "column": gauge.column.name() })
}

fn cause(own: &OwnCause) -> Value {
    json!({ "name": own.cause.name(), "kind": own.cause.kind().name(), "doc": own.doc })
}

fn parameter(param: &Param<Text>, is_fixed: bool) -> Value {
    let (kind, unit) = match param.kind {
        Kind::Length => ("length", "packets or bytes"),
        Kind::LengthOrTime => ("length or time", "packets, bytes or seconds"),
        Kind::Time => ("time", "s"),
        Kind::Frequency => ("frequency", "hz"),
        Kind::Rate => ("rate", "bit/s"),
        Kind::Number => ("number", ""),
        Kind::Integer => ("integer", ""),
        Kind::Flag => ("flag", ""),
        Kind::Size => ("size", "bytes"),
        Kind::Word(_) => ("word", ""),
        Kind::Selector => ("selector", ""),
    };
    let words: &[&str] = match param.kind {
        Kind::Word(words) => words,
        Kind::Flag => &["true", "false"],
        _ => &[],
    };
    let bound = |x: f64| x.is_finite().then_some(x);
    json!({
        "name": param.name,
        "kind": kind,
        "unit": unit,
        "default": param.default,
        // A parameter without a default is either computed, as its text then says, or absent.
        "computed": param.default.is_empty() && param.doc.to_lowercase().contains("computed"),
        "range": [bound(param.range.0), bound(param.range.1)],
        "words": words,
        "expected": param.expected(),
        "doc": param.doc,
        "source": param.source,
        // Whether it stays what it is while a run goes on.
        "fixed": is_fixed,
    })
}

/// The equilibrium that the parameters of the discipline before a link were computed for, where there is one.
pub fn equilibrium(link: &Link) -> Value {
    let (kind, values) = (link.qdiscs[0].kind(), &link.qdiscs[0].values);
    if kind != RedOpt::ROW.name {
        return Value::Null;
    }
    let design = redopt::design(&redopt::network(values, values.rate_at(link.rates[0])));
    json!({
        "drop_probability": design.drop_probability,
        "queue_packets": (design.min + design.max) / 2.0,
        "rtt_s": design.rtt_s,
        "window_packets": design.window,
        "tcp_bps": design.for_tcp * 8.0 * f64::from(values.size("mean_packet")),
    })
}

/// Every stack profile with its values.
pub fn stacks() -> Value {
    let profiles = tcp::profiles().iter().map(|profile| {
        let values = profile.values.iter().map(|v| json!({"name": v.name, "value": v.value, "source": v.source}));
        json!({"name": profile.name, "doc": profile.doc, "values": values.collect::<Vec<_>>()})
    });
    profiles.collect()
}

/// Every congestion controller: its word for `tcp.cc`, and what it is.
pub fn controllers() -> Value {
    let rows = Control::WORDS.iter().zip(Control::DOCS);
    rows.map(|((name, control), doc)| json!({ "name": name, "doc": doc.trim(), "models_path": control.models_path() }))
        .collect()
}

/// Every kind of traffic, or model of a kind, with its keys.
pub fn traffic() -> Value {
    scenario::kinds()
        .iter()
        .chain([&scenario::HOMES])
        .flat_map(|row| row.models.iter().map(|model| of_traffic(row, model)))
        .collect()
}

fn of_traffic(row: &scenario::Row, model: &scenario::Model) -> Value {
    let name = if model.name.is_empty() { row.name.to_owned() } else { format!("{}/{}", row.name, model.name) };
    json!({
        "name": name,
        "kind": row.name,
        "doc": model.doc,
        "source": model.source,
        "speaks_tcp": row.speaks_tcp,
        "words": model.words,
        "is_recorded": row.is_recorded,
        "params": model.keys.iter().copied().chain(row.shared_keys()).map(|key| traffic_key(&key)).collect::<Vec<_>>(),
    })
}

fn traffic_key(key: &Key) -> Value {
    let takes = key.takes;
    let (low, high) = takes.range();
    json!({
        "name": key.name,
        "kind": takes.name(),
        "unit": takes.unit(),
        "default": key.default,
        "range": [low, high],
        "words": if let Takes::Word(words) = takes { words } else { &[] },
        "doc": key.doc,
    })
}
