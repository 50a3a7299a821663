//! Runs scenarios without writing anything and prints for each what every endless flow got.
//!
//! `shares SCENARIO.toml [key=value ...] [-- key=value ...]`: one run for each group of settings, one line of JSON for
//! each run: `{"settings": [...], "flows_bps": [...], "summary": {...}}`, flows in the order of the
//! traffic blocks.

use record::{Discard, Engine};
use std::process::ExitCode;

#[expect(clippy::print_stdout, reason = "a program that prints")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("shares: expected a scenario file");
        return ExitCode::from(2);
    };
    let mut groups: Vec<Vec<(String, String)>> = vec![vec![]];
    for argument in arguments {
        if argument == "--" {
            groups.push(vec![]);
        } else if let Some((key, value)) = argument.split_once('=') {
            groups.last_mut().expect("there is a first").push((key.to_owned(), value.to_owned()));
        } else {
            eprintln!("shares: {argument}: expected key=value or --");
            return ExitCode::from(2);
        }
    }
    for settings in groups {
        match run(&file, &settings) {
            Ok(line) => println!("{line}"),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn run(file: &str, settings: &[(String, String)]) -> Result<String, String> {
    let read = |name: &str| std::fs::read_to_string(name).map_err(|error| error.to_string());
    let text = read(file).map_err(|error| format!("{file}: {error}"))?;
    let resolved = scenario::resolve(&text, file, settings, &read).map_err(|error| error.to_string())?;
    let scenario = resolved.scenario().map_err(|error| error.to_string())?;
    let outcome = sim::run(scenario, &mut Discard, &mut |_| true).expect("never broken off");
    let seconds = outcome.measured.secs_f64();
    let flows: Vec<f64> = outcome.tcp.bulk_bytes.iter().map(|bytes| *bytes as f64 * 8.0 / seconds).collect();
    let engine = Engine { kind: "sim", ..Engine::default() };
    let summary = outcome.summary(scenario, &engine);
    let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let line = serde_json::json!({ "settings": settings, "flows_bps": flows, "summary": summary.to_json() });
    Ok(line.to_string())
}
