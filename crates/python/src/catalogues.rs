//! The registries as JSON.

use aqm::param::{Kind, Param};
use aqm::qdisc::fq_law;
use aqm::registry::{self, Row};
use serde_json::{Value, json};

/// Every discipline with its parameters: those with a row of their own, then every law under fair queueing, which
/// names its `law`.
pub fn disciplines() -> Value {
    let own = registry::rows().iter().map(|row| discipline(row, None));
    let fair = registry::fair_rows().iter().map(|row| discipline(row, fq_law::law_of(row.name)));
    own.chain(fair).collect()
}

fn discipline(row: &Row, law: Option<&str>) -> Value {
    json!({
        "name": row.name,
        "law": law,
        "aliases": row.aliases,
        "doc": row.doc,
        "source": row.source,
        "year": row.year,
        "marks": row.marks,
        "params": row.params.iter().map(param).collect::<Vec<_>>(),
    })
}

fn param(param: &Param) -> Value {
    let (kind, unit) = match param.kind {
        Kind::Length => ("length", "p or b"),
        Kind::LengthOrTime => ("length or time", "p, b or ms"),
        Kind::Time => ("time", "s"),
        Kind::Frequency => ("frequency", "hz"),
        Kind::Rate => ("rate", "bit/s"),
        Kind::Number => ("number", ""),
        Kind::Integer => ("integer", ""),
        Kind::Flag => ("flag", ""),
        Kind::Size => ("size", "b"),
        Kind::Word(_) => ("word", ""),
    };
    json!({
        "name": param.name,
        "kind": kind,
        "unit": unit,
        "default": param.default,
        "range": param.expected(),
        "doc": param.doc,
        "source": param.source,
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

/// Every kind of traffic with its keys.
pub fn traffic() -> Value {
    let entries = traffic::catalogue().iter().map(|entry| {
        let keys = entry.keys.iter().map(|(name, default, doc)| json!({"name": name, "default": default, "doc": doc}));
        json!({
            "name": entry.name,
            "doc": entry.doc,
            "source": entry.source,
            "params": keys.collect::<Vec<_>>(),
        })
    });
    entries.collect()
}
