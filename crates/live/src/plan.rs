//! A [`Plan`] has what a run is told. This file also writes what the run says while it goes on, and what it comes to.
//!
//! A folder holds all of it: `scenario.toml`, complete, and `live.json` are read; tables, `progress.jsonl` and
//! `outcome.json` or `error.json` are written.

use crate::settings::Settings;
use aqm::registry::Registry;
use scenario::{Capture, Maker, Scenario};
use serde_json::{Value, json};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The user's input is bad, or the machine cannot do it: exit codes.
const MISTAKEN: u8 = 2;
const UNABLE: u8 = 3;

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where its tables go.
    pub directory: PathBuf,
    /// The scenario.
    pub scenario: Scenario,
    /// Whether the time of this kernel is virtual.
    pub is_virtual: bool,
    /// What the hosts are set to.
    pub settings: Settings,
    /// A program that runs inside, and its arguments; the run ends with it. Empty for none.
    pub command: Vec<String>,
    /// The side it runs on: 0 left, 1 right.
    pub side: u8,
    /// Whether the scenario's own traffic runs.
    pub has_traffic: bool,
    /// Whether it writes down how far it is.
    pub tells_progress: bool,
    /// The process that started this one, where that is known.
    pub parent: Option<u32>,
}

/// Why there is no outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// In one line.
    pub message: String,
    /// 2 for bad input, 3 for a machine that cannot do it.
    pub exit_code: u8,
}

/// What a run comes to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `summary.json`.
    pub summary: Value,
    /// What the hosts were set to, as the kernel says.
    pub readback: Value,
}

impl Failure {
    /// What was asked for makes no sense.
    pub fn mistaken(message: impl fmt::Display) -> Self {
        Self::new(message, MISTAKEN)
    }

    /// This machine cannot do it.
    pub fn unable(message: impl fmt::Display) -> Self {
        Self::new(message, UNABLE)
    }

    fn new(message: impl fmt::Display, exit_code: u8) -> Self {
        let message = message.to_string();
        Self { message: message.split_whitespace().collect::<Vec<_>>().join(" "), exit_code }
    }

    /// Writes `error.json` into `directory`, as far as the disk lets it.
    pub fn write(&self, directory: &Path) {
        let text = json!({ "message": self.message, "exit_code": self.exit_code }).to_string();
        let _ = write_whole(&directory.join("error.json"), &text);
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::unable(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Outcome {
    /// Writes `outcome.json` into `directory`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let value = json!({ "summary": self.summary, "readback": self.readback });
        write_whole(&directory.join("outcome.json"), &value.to_string())
    }
}

impl Plan {
    /// The plan in `directory`, whose scenario may name the disciplines of `registry`.
    ///
    /// # Errors
    /// What cannot be read, or makes no sense.
    pub fn read(registry: &Registry, directory: &Path) -> Result<Self, Failure> {
        let text = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).map_err(|error| Failure::mistaken(format!("{}: {error}", path.display())))
        };
        let bad = |message: String| Failure::mistaken(format!("{}: {message}", directory.join("live.json").display()));
        let told: Value = serde_json::from_str(&text("live.json")?).map_err(|error| bad(error.to_string()))?;
        let origin = told["origin"].as_str().unwrap_or("scenario.toml");
        let folder = Path::new(origin).parent().unwrap_or(directory);
        let files = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
        let resolved = scenario::resolve_with(registry, &text("scenario.toml")?, origin, &[], &files);
        let resolved = resolved.map_err(Failure::mistaken)?;
        let mut scenario = resolved.scenario().map_err(Failure::mistaken)?.clone();
        scenario.live.capture = match told["capture"].as_str() {
            None => scenario.live.capture,
            Some("off") => Capture::Off,
            Some("before") => Capture::Before,
            Some("after") => Capture::After,
            Some("both") => Capture::Both,
            Some(other) => return Err(bad(format!("capture = {other}: expected one of off, before, after, both"))),
        };
        let fits = scenario.live.fits(scenario.links.len());
        fits.map_err(|expected| Failure::mistaken(format!("--capture: expected {expected}")))?;
        let side = match told["side"].as_str() {
            None | Some("left") => 0,
            Some("right") => 1,
            Some(other) => return Err(bad(format!("side = {other}: expected left or right"))),
        };
        let words = told["command"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_virtual = told["virtual"].as_bool().unwrap_or(false);
        let settings = Settings::read(&told["settings"]).map_err(bad)?;
        if scenario.live.qdisc == Maker::Kernel && settings.kernel_qdisc.is_null() {
            return Err(bad("live.qdisc = kernel: expected settings.kernel_qdisc".to_owned()));
        }
        Ok(Self {
            directory: directory.to_owned(),
            scenario,
            is_virtual,
            settings,
            command: words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            side,
            has_traffic: told["traffic"].as_bool().unwrap_or(true),
            tells_progress: told["progress"].as_bool().unwrap_or(true),
            // In a kernel of its own there are other processes.
            parent: told["parent"].as_u64().filter(|_| !is_virtual).and_then(|parent| u32::try_from(parent).ok()),
        })
    }
}

/// Writes a file whole or not at all.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        let failure = Failure::unable("a\n  b\n");
        assert_eq!((failure.message.as_str(), failure.exit_code), ("a b", 3));
    }
}
