//! This file writes a resolved scenario as JSON for Python. Plans ask for thousands of them, so that it is written
//! straight away, without a tree in between.

use scenario::{Document, Resolved};
use serde::Serialize;

#[derive(Serialize)]
struct Answer<'a> {
    toml: &'a str,
    scenario: &'a Document,
    digest: &'a str,
    loads: Vec<Load<'a>>,
    reached: Vec<Reached>,
    files: Vec<File<'a>>,
    memory: Vec<Need>,
}

#[derive(Serialize)]
struct Load<'a> {
    traffic: usize,
    load_bps: u64,
    direction: String,
    place: &'a str,
}

#[derive(Serialize)]
struct Reached {
    traffic: usize,
    load_bps: u64,
    offered_bps: f64,
    scale: f64,
    left_out: usize,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    sha256: &'a str,
}

#[derive(Serialize)]
struct Need {
    key: String,
    bytes: u64,
}

/// The scenario as JSON.
pub fn of(resolved: &Resolved) -> String {
    let loads = resolved.loads().iter().zip(resolved.load_places()).map(|(request, place)| Load {
        traffic: request.traffic,
        load_bps: request.load.bps(),
        direction: format!("{:?}", request.direction).to_lowercase(),
        place,
    });
    let reached = resolved.reached().iter().map(|(traffic, found)| Reached {
        traffic: *traffic,
        load_bps: found.load.bps(),
        offered_bps: found.offered_bps,
        scale: found.scale,
        left_out: found.left_out,
    });
    let needs = resolved.scenario().map(sim::memory).unwrap_or_default();
    let answer = Answer {
        toml: resolved.text(),
        scenario: resolved.document(),
        digest: resolved.digest(),
        loads: loads.collect(),
        reached: reached.collect(),
        files: resolved.files().iter().map(|kept| File { file: &kept.file, sha256: &kept.sha256 }).collect(),
        memory: needs.into_iter().map(|need| Need { key: need.key, bytes: need.bytes }).collect(),
    };
    serde_json::to_string(&answer).expect("names are text, and nothing is shared")
}
