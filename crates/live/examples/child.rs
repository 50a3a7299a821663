//! `child DIRECTORY`: what `aqmlab live` starts for each run, without Python: makes the run that the folder describes.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let directory = std::env::args().nth(1).expect("expected a folder");
    std::process::ExitCode::from(live::child(&aqm::registry::Registry::builtin(), std::path::Path::new(&directory)))
}

#[cfg(not(target_os = "linux"))]
fn main() {}
