//! The packets of one link are captured in one file. With several links, each direction that is asked for has its own.

use super::{CHUNKS, Capture, CaptureReport, LEAST_CHUNKS, Sides};
use net::Port;
use scenario::{Capture as CaptureAt, Scenario};
use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;

const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// The captures of a run, found by the port at which a packet is.
#[derive(Default)]
pub struct Captures {
    files: Vec<Capture>,
    /// For each port the number of its file; empty where nothing is captured.
    of_port: Vec<Option<usize>>,
    /// For each file the link and the direction that it has, where there are several links.
    places: Vec<(String, &'static str)>,
}

impl Captures {
    /// The captures that `[live]` asks for, in new files in `directory`: `packets.pcapng` of one link,
    /// `packets.LINK.DIRECTION.pcapng` of several. Call it from a thread of ordinary priority: those that write inherit
    /// it.
    ///
    /// # Errors
    /// Where a file cannot be made or begun, or a thread not started.
    pub fn create(directory: &Path, scenario: &Scenario) -> io::Result<Self> {
        let live = &scenario.live;
        let sides = Sides {
            before: matches!(live.capture, CaptureAt::Before | CaptureAt::Both),
            after: matches!(live.capture, CaptureAt::After | CaptureAt::Both),
        };
        if !sides.before && !sides.after {
            return Ok(Self::default());
        }
        if !scenario.has_routes() {
            let file = Capture::create(&directory.join("packets.pcapng"), scenario, sides, live.capture_bytes)?;
            return Ok(Self { files: vec![file], of_port: vec![Some(0); 2], places: Vec::new() });
        }
        let captured = live.captured(scenario.links.len());
        let most = (CHUNKS / captured.len()).max(LEAST_CHUNKS);
        let mut all = Self { of_port: vec![None; 2 * scenario.links.len()], ..Self::default() };
        for (number, side) in captured {
            let link = &scenario.links[number];
            let path = directory.join(format!("packets.{}.{}.pcapng", link.name, DIRECTIONS[side]));
            let ways = [side == 0, side == 1];
            all.of_port[2 * number + side] = Some(all.files.len());
            all.places.push((link.name.clone(), DIRECTIONS[side]));
            all.files.push(Capture::of_link(&path, scenario, (link, ways), sides, live.capture_bytes, most)?);
        }
        Ok(all)
    }

    /// The capture of what is at `port`, if there is one.
    #[inline]
    pub fn at(&mut self, port: Port) -> Option<&mut Capture> {
        let file = (*self.of_port.get(port.index())?)?;
        Some(&mut self.files[file])
    }

    /// Writes what is left, waits until it is written, and tells what it came to: null where nothing was captured, of
    /// several links `links` with an object for each link and direction.
    pub fn end(self) -> Value {
        let Self { files, places, .. } = self;
        let reports: Vec<Value> = files.into_iter().map(|file| CaptureReport::to_json(&file.end())).collect();
        if places.is_empty() {
            return reports.into_iter().next().unwrap_or(Value::Null);
        }
        let mut links = Map::new();
        for ((link, direction), report) in places.into_iter().zip(reports) {
            links.entry(link).or_insert_with(|| json!({}))[direction] = report;
        }
        json!({ "links": links })
    }
}
