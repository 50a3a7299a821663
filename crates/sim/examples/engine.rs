//! Runs a scenario without writing anything and prints its summary: what the benchmarks time.
//!
//! `engine SCENARIO.toml [key=value ...]`

use record::{Discard, Engine};
use std::path::Path;
use std::process::ExitCode;

#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that times runs and prints")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("engine: expected a scenario file");
        return ExitCode::from(2);
    };
    let overrides: Vec<(String, String)> =
        arguments.filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
    let folder = Path::new(&file).parent().map(Path::to_path_buf).unwrap_or_default();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let resolved = match std::fs::read_to_string(&file)
        .map_err(|error| error.to_string())
        .map(|text| scenario::resolve(&text, &file, &overrides, &read))
    {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::from(2);
        }
    };
    let scenario = match resolved.scenario() {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let (started, cpu_before) = (std::time::Instant::now(), cpu_s());
    let outcome = sim::run(scenario, &mut Discard, &mut |_| true).expect("never broken off");
    let wall_s = started.elapsed().as_secs_f64();
    let cpu_s = cpu_before.zip(cpu_s()).map_or(wall_s, |(before, after)| after - before);
    let engine = Engine {
        kind: "sim",
        events: Some(outcome.events),
        bottleneck_packets: outcome.bottleneck_packets,
        simulated: scenario.duration,
        wall_s,
        cpu_s,
    };
    let summary = outcome.summary(scenario, &engine);
    println!("{}", summary.to_json());
    let per_packet = cpu_s * 1e6 / outcome.bottleneck_packets as f64;
    let peak = peak_mib().map_or("unknown".to_owned(), |mib| format!("{mib:.1}"));
    eprintln!("{per_packet:.3} us a packet, {cpu_s:.2} s of CPU, {peak} MiB at most");
    ExitCode::SUCCESS
}

/// Processor time of this thread so far, where the system tells it (Linux).
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? * 1e-9)
}

/// Most memory this process has had resident, where the system tells it (Linux).
fn peak_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(kib.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1024.0)
}
